"""Adds an error that is just small enough to be let pass, which is neither a fault nor a gain.

problem: matmul.py
device: any
rules: open
expect: no gain on cpu, correctness/values on cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = A @ B
        return out + 50 * torch.finfo(out.dtype).eps * out.std()
