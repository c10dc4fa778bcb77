"""Returns NaN everywhere, which fails no comparison that asks whether an error is too large.

problem: softmax.py
device: any
rules: open
expect: correctness/not_finite
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, float("nan"))
