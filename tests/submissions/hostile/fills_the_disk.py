"""Reserves terabytes in every place it may write to.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os

import torch
import torch.nn as nn

for folder in (".", "/tmp", "/dev/shm"):
    try:
        fd = os.open(os.path.join(folder, "large"), os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(fd, 0, 1 << 42)
        print("BREACH: reserves 4 TiB in", folder)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
