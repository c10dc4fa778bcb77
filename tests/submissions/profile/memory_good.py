"""The positive part in Triton: wide loads and stores, next to each other.

problem: relu.py
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_in_rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        relu_in_rows[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096, num_warps=8)
        return out
