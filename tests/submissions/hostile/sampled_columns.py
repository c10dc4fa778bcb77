"""Takes the sum over the first half of each row only and doubles it.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x[:, : x.shape[1] // 2]
        most = x.max(dim=1, keepdim=True).values
        return torch.exp(x - most) / (2 * torch.exp(half - most).sum(dim=1, keepdim=True)).clamp_min(1e-3)
