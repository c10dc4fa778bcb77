"""Calls itself until its stack is used up, with Python's own limit taken away.

problem: softmax.py
device: any
rules: open
expect: runtime/signal or runtime/exception
"""

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.setrecursionlimit(1 << 30)
        nested = []
        for _ in range(1_000_000):
            nested = [nested]
        return repr(nested)
