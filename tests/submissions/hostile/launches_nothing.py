"""Launches a real kernel over no work at all and returns memory as it was allocated.

problem: row_norms.py
device: any
rules: kernel
expect: correctness/not_written or correctness/values
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sqrt(tl.sum(value * value, axis=0)))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        norms[(0,)](x, out, x.shape[1], BLOCK=1024)
        return out
