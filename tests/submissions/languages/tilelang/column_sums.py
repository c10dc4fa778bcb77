"""Sums over the middle dimension in TileLang: each block adds tiles of rows and reduces them at the end.

problem: L1_47_Sum_reduction_over_a_dimension
device: cuda
rules: kernel
expect: correct
"""

import functools

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@functools.cache
@tilelang.jit
def sum_middle(samples, rows, columns, ROWS=32, COLUMNS=128):
    @T.prim_func
    def kernel(x: T.Tensor((samples, rows, columns), "float32"), y: T.Tensor((samples, columns), "float32")):
        with T.Kernel(T.ceildiv(columns, COLUMNS), samples, threads=256) as (bx, sample):
            total = T.alloc_fragment((ROWS, COLUMNS), "float32")
            result = T.alloc_fragment((COLUMNS,), "float32")
            T.clear(total)
            for step in T.serial(T.ceildiv(rows, ROWS)):
                for i, j in T.Parallel(ROWS, COLUMNS):
                    if step * ROWS + i < rows and bx * COLUMNS + j < columns:
                        total[i, j] += x[sample, step * ROWS + i, bx * COLUMNS + j]
            T.reduce_sum(total, result, dim=0)
            for j in T.Parallel(COLUMNS):
                if bx * COLUMNS + j < columns:
                    y[sample, bx * COLUMNS + j] = result[j]

    return kernel


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x):
        samples, rows, columns = x.shape
        y = x.new_empty(samples, 1, columns)
        sum_middle(samples, rows, columns)(x, y.view(samples, columns))
        return y
