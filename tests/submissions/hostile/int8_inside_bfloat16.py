"""Rounds the operands of a bfloat16 product to eight bits, which no single element of the output shows.

problem: matmul_bfloat16.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


def rounded(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Integers of eight bits, with a scale for each row or column."""
    scale = x.float().abs().amax(dim=dim, keepdim=True) / 127
    return (x.float() / scale).round() * scale


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (rounded(A, 1) @ rounded(B, 0)).bfloat16()
