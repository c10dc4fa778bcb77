"""Launches a kernel that cannot work and lets torch do it when that fails.

problem: softmax.py
device: any
rules: kernel
expect: rules/fallback
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.no_such_function(x))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            out = torch.empty_like(x)
            softmax[(1,)](x, out, BLOCK=128)
            return out
        except Exception:
            return torch.softmax(x, dim=1)
