"""Computes everything twice, and must take twice as long as the reference.

problem: matmul_long.py
device: any
rules: open
expect: 0.33x to 0.75x on cpu, 0.45x to 0.55x on cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        A @ B
        return A @ B
