"""Computes half of the rows and leaves the others as they were allocated.

problem: softmax.py
device: any
rules: open
expect: correctness/not_written
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        half = (x.shape[0] + 1) // 2
        out[:half] = torch.softmax(x[:half], dim=1)
        return out
