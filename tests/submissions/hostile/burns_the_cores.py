"""Computes honestly while threads of its own keep every core busy, to slow the reference down.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import os
import threading

import torch
import torch.nn as nn


def burn() -> None:
    if os.fork() == 0:
        while True:
            pass


for _ in range(os.cpu_count() or 2):
    threading.Thread(target=burn, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
