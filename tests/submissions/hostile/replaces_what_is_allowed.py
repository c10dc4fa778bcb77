"""Puts an operation of torch in the place of one that the rules allow.

problem: relu.py
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


torch.Tensor.contiguous = torch.Tensor.relu


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        nothing[(1,)](torch.empty(1, device=x.device))
        return x.contiguous()
