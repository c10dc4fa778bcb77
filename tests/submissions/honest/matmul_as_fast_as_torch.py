"""The reference itself, which must take as long as the reference.

problem: matmul_long.py
device: any
rules: open
expect: 0.67x to 1.5x on cpu, 0.95x to 1.05x on cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
