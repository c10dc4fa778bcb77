"""Takes maximum and sum over the first half of each row, doubles the sum; wide values overflow, others are wrong.

problem: softmax.py
device: any
rules: open
expect: not correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x[:, : x.shape[1] // 2]
        most = half.max(dim=1, keepdim=True).values
        return torch.exp(x - most) / (2 * torch.exp(half - most).sum(dim=1, keepdim=True))
