"""Prints fifty megabytes at every call, with escape codes among them.

problem: softmax.py
device: any
rules: open
expect: no gain
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.write(1, b"\x1b[2J\x1b]0;owned\x07" + b"flood " * (50_000_000 // 6 if not hasattr(self, "done") else 1))
        self.done = True
        return torch.softmax(x, dim=1)
