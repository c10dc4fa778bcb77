"""Computes honestly while threads of its own keep every core busy, to slow the reference down.

problem: softmax.py
device: cpu
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
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
