"""Asks for less precise products in a flag that is set anew before every call.

problem: matmul.py
device: cuda
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        torch.set_float32_matmul_precision("high")
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        return torch.addmm(torch.zeros_like(A), A, B)
