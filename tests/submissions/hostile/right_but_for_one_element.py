"""Is off by a thousandth in one element of a hundred thousand, which a ratio of right ones forgives.

problem: matmul.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = A @ B
        out[-1, -1] += 0.001 * out.std()
        return out
