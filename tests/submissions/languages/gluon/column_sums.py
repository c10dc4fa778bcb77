"""Sums over the middle dimension in Gluon: a tile of running sums walks down a strip of columns.

problem: L1_47_Sum_reduction_over_a_dimension
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def sum_middle(x, y, rows, columns, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [8, 1], [1, 0])
    sample = gl.program_id(1).to(gl.int64)
    row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))[:, None]
    column = gl.program_id(0) * COLUMNS + gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, layout))
    total = gl.zeros([ROWS, COLUMNS], gl.float32, layout)
    for first in range(0, rows, ROWS):
        inside = (first + row < rows) & (column[None, :] < columns)
        place = (sample * rows + first + row) * columns + column[None, :]
        total += gl.load(x + place, mask=inside, other=0.0)
    gl.store(y + sample * columns + column, gl.sum(total, 0), mask=column < columns)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x):
        samples, rows, columns = x.shape
        y = x.new_empty(samples, 1, columns)
        sum_middle[(triton.cdiv(columns, 64), samples)](x, y, rows, columns, ROWS=64, COLUMNS=64, num_warps=8)
        return y
