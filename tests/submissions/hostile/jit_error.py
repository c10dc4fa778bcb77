"""Has an error in its Triton kernel.

problem: softmax.py
device: any
rules: kernel
expect: compile/jit
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.softmax_of_everything(value), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(1,)](x, out, x.numel(), BLOCK=1024)
        return out
