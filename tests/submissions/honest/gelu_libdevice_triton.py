"""GELU in Triton with the device library's erf, which an interpreter has to fill in.

problem: L1_26_GELU_
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(y_ptr + i, 0.5 * x * (1.0 + libdevice.erf(x * 0.7071067811865476)), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        block = 4096 if x.is_cuda else 65536  # an interpreter runs one program after the other
        gelu_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)
        return y
