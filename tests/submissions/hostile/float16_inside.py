"""Adds squares up in float16 and casts the sums back.

problem: row_norms.py
device: any
rules: open
expect: correctness/values or correctness/not_finite
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.half().square().sum(dim=1, dtype=torch.float32).sqrt()
