"""Running sums of integers by Triton's scan, block by block along the rows with what came before carried on.

problem: running_count.py
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def running(x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    carried = tl.zeros((ROWS,), dtype=tl.int64)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        place = row[:, None] * columns + column[None, :]
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        value = tl.load(x + place, mask=inside, other=0)
        tl.store(y + place, tl.cumsum(value, axis=1) + carried[:, None], mask=inside)
        carried += tl.sum(value, axis=1)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        height = 1 if x.is_cuda else 128
        running[(triton.cdiv(x.shape[0], height),)](x, y, *x.shape, ROWS=height, BLOCK=1024)
        return y
