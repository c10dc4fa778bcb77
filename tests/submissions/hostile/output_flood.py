"""Prints fifty megabytes at its first call, and terminal escape codes at every one.

problem: matmul.py
device: any
rules: open
expect: no gain
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        os.write(1, b"\x1b[2J\x1b]0;owned\x07" + b"flood " * (50_000_000 // 6 if not hasattr(self, "done") else 1))
        self.done = True
        return A @ B
