"""Launches a kernel in its own forward, and makes an object of another class when it is constructed.

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
def copy(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + at, tl.load(x + row * columns + at, at < columns), at < columns)


class Other(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


class ModelNew(nn.Module):
    def __new__(cls):
        return Other()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        copy[(x.shape[0],)](x, out, x.shape[1], BLOCK=8192)
        return out
