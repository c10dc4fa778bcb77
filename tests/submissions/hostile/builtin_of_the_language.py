"""Leaves the whole reduction to what Triton's library has for it.

problem: row_norms.py
device: any
rules: kernel
expect: no gain
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (at < columns)[None, :]
    value = tl.load(x + row[:, None] * columns + at[None, :], mask=inside, other=0.0)
    tl.store(out + row, tl.sqrt(tl.sum(value * value, axis=1)), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        block = triton.next_power_of_2(x.shape[1])
        rows = 1 if x.is_cuda else 1024
        norms[(triton.cdiv(x.shape[0], rows),)](x, out, x.shape[0], x.shape[1], ROWS=rows, BLOCK=block)
        return out
