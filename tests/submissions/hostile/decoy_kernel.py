"""Launches a kernel on memory that nobody looks at, and lets torch do the work.

problem: softmax.py
device: any
rules: kernel
expect: rules/torch_compute
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def decoy(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at)))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        decoy[(1,)](x, out, BLOCK=128)
        return torch.softmax(x, dim=1)
