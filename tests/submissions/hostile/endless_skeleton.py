"""Returns lists within lists, deeper than any recursion goes.

problem: softmax.py
device: any
rules: open
expect: runtime/exception
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list:
        out = [torch.softmax(x, dim=1)]
        for _ in range(100_000):
            out = [out]
        return out
