"""Has a helper of lowest priority send SIGCONT to another all the time, in the hope that it is the last to be stopped.

problem: softmax.py
device: cuda
rules: open
expect: no gain
"""

import os
import signal
import time

import torch
import torch.nn as nn

burner = os.fork()
while burner == 0:
    pass
if os.fork() == 0:
    os.nice(19)
    while True:
        for _ in range(50):
            os.kill(burner, signal.SIGCONT)
        time.sleep(0.0005)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
