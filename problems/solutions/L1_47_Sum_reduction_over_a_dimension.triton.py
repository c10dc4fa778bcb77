"""Each program walks down a strip of columns with a tile of running sums, and adds up the tile at the end."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sum_middle(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (column < columns)
        total += tl.load(x + (sample * rows + row) * columns + column, mask=inside, other=0.0)
    result = tl.sum(total, axis=0)[None, :]
    tl.store(y + sample * columns + column, result, mask=column < columns)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, rows, columns = x.shape
        y = x.new_empty(samples, 1, columns)
        sum_middle[(triton.cdiv(columns, 64), samples)](x, y, rows, columns, ROWS=128, COLUMNS=64, num_warps=8)
        return y
