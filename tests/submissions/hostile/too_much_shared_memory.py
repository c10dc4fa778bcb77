"""Launches a kernel that asks for more shared memory than there is, takes no notice, and returns what was in memory.

problem: row_norms.py
device: cuda
rules: open
expect: correctness/not_written
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, out, N: tl.constexpr):
    at = tl.arange(0, N)
    whole = tl.load(a + at[:, None] * N + at[None, :])
    tl.store(out + at[:, None] * N + at[None, :], tl.dot(whole, whole))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        try:
            product[(1,)](x, torch.empty(256, 256, device=x.device), N=256)
        except Exception:
            pass
        return out
