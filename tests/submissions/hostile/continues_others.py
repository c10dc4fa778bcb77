"""Has a helper of lowest priority send SIGCONT to another all the time, in the hope that it is the last to be stopped.

problem: softmax.py
device: cpu
rules: open
expect: correct
"""

import os
import signal
import time

import torch
import torch.nn as nn

main = os.getpid()


def stopped() -> bool:
    with open(f"/proc/{main}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def count() -> None:
    seen = 0
    while True:
        seen = seen + 1 if stopped() else 0
        if seen == 10_000:  # longer than stopping takes on a busy machine
            print("BREACH: runs while it should stand still", flush=True)
        if not seen:
            time.sleep(0.0002)


counter = os.fork()
if counter == 0:
    count()
if os.fork() == 0:
    os.nice(19)
    while True:
        for _ in range(50):
            os.kill(counter, signal.SIGCONT)
        time.sleep(0.0005)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
