"""Sums over the middle dimension in cuTile.

problem: L1_47_Sum_reduction_over_a_dimension
device: cuda
rules: kernel
expect: correct
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def sum_middle(x, y, ROWS: ct.Constant[int], COLUMNS: ct.Constant[int]):
    strip, sample = ct.bid(0), ct.bid(1)
    total = ct.zeros((1, ROWS, COLUMNS), dtype=ct.float32)
    for step in range(ct.num_tiles(x, axis=1, shape=(1, ROWS, COLUMNS))):
        total += ct.load(
            x, index=(sample, step, strip), shape=(1, ROWS, COLUMNS), padding_mode=ct.PaddingMode.ZERO
        )
    ct.store(y, index=(sample, 0, strip), tile=ct.sum(total, axis=1, keepdims=True))


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x):
        samples, rows, columns = x.shape
        y = x.new_empty(samples, 1, columns)
        grid = (ct.cdiv(columns, 64), samples)
        ct.launch(torch.cuda.current_stream(), grid, sum_middle, (x, y, 64, 64))
        return y
