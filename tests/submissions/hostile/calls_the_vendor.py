"""Calls the vendor's matrix product by way of the operators that torch keeps for itself.

problem: matmul.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.mm.default(A, B)
