"""Stops itself in the middle of each call and has a child continue it, to confuse whoever freezes and thaws it.

problem: matmul.py
device: cpu
rules: open
expect: correct
"""

import os
import signal
import time

import torch
import torch.nn as nn

if os.fork() == 0:
    while True:
        time.sleep(0.001)
        os.kill(os.getppid(), signal.SIGCONT)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = A @ B
        os.kill(os.getpid(), signal.SIGSTOP)
        return out
