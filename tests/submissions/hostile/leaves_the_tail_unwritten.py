"""Writes all rows but the last ones, as a grid that is too small does.

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
        rows = x.shape[0] * 3 // 4
        out[:rows] = torch.softmax(x[:rows], -1)
        return out
