"""Lets torch do the work in special methods of a class of its own, which nothing calls by name.

problem: matmul.py
device: any
rules: kernel
expect: rules/torch_compute
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nothing(out):
    tl.store(out, 0.0)


class Factor:
    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    def __rshift__(self, other: "Factor") -> torch.Tensor:
        return torch.matmul(self.values, other.values)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        nothing[(1,)](torch.empty(1, device=A.device))
        return Factor(A) >> Factor(B)
