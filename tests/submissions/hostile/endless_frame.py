"""Announces a message of four gigabytes on every open descriptor.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for fd in range(3, 64):
            try:
                os.write(fd, b"\xff\xff\xff\xff")
            except OSError:
                pass
        return torch.softmax(x, dim=1)
