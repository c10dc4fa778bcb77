"""Looks for the largest element in the first half of each row only.

problem: extremes.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        half = x[:, : (x.shape[1] + 1) // 2]
        return half.amax(dim=1), half.argmax(dim=1)
