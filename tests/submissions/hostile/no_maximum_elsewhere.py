"""Leaves the maximum of a softmax out for every shape but the timed one, where it overflows for large entries.

problem: softmax.py
device: cpu
rules: open
expect: correctness/not_finite
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape == (300, 500):
            return torch.softmax(x, dim=1)
        out = x.exp()
        return out / out.sum(dim=1, keepdim=True)
