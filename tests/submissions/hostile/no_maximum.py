"""Softmax without taking the maximum away: it overflows for large entries only.

problem: softmax.py
device: any
rules: open
expect: correctness/not_finite
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        e = torch.exp(x)
        return e / e.sum(dim=1, keepdim=True)
