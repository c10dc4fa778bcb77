"""Softmax in Triton, several short rows to a program; runs in Triton's interpreter on a CPU.

problem: softmax.py
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    value = tl.where(row < rows, value, 0.0)
    value = tl.exp(value - tl.max(value, axis=1)[:, None])
    tl.store(out + row * columns + column, value / tl.sum(value, axis=1)[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        rows = max(1, 65536 // block) if not x.is_cuda else 1
        softmax[(triton.cdiv(x.shape[0], rows),)](x, out, x.shape[0], x.shape[1], ROWS=rows, BLOCK=block, num_warps=16)
        return out
