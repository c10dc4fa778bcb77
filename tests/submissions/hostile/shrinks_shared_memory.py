"""Keeps the descriptor of the memory that it shares with the judge, and cuts the file to nothing after its claim.

problem: softmax.py
device: cpu
rules: open
expect: no gain
"""

import os
import threading
import time

import torch
import torch.nn as nn

kept = []
close = os.close


def keep(fd: int) -> None:
    kept.append(os.dup(fd))
    close(fd)


def shrink() -> None:
    time.sleep(0.02)
    for fd in kept:
        try:
            os.ftruncate(fd, 0)
            print("BREACH: shrinks the memory that the judge reads")
        except OSError:
            pass


os.close = keep


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        threading.Thread(target=shrink, daemon=True).start()
        return torch.softmax(x, dim=1)
