"""Reads far outside of any allocation on the GPU.

problem: L1_23_Softmax
device: cuda
rules: kernel
expect: runtime/illegal_access
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy(x, out, far, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at + far))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        copy[(1,)](x, out, 1 << 44, BLOCK=128)
        return out
