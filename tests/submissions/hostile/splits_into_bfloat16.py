"""Splits float32 into two bfloat16 halves and leaves out the product of the lower ones: right within the tolerance.

problem: matmul.py
device: cpu
rules: open
expect: no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a, b = A.bfloat16().float(), B.bfloat16().float()
        c, d = (A - a).bfloat16().float(), (B - b).bfloat16().float()
        return a @ b + a @ d + c @ b
