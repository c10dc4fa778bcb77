"""Softmax in TileLang: blocks of rows, with running maxima and sums in a first pass.

problem: L1_23_Softmax
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
def softmax(rows, columns, BLOCK=1024):
    steps = (columns + BLOCK - 1) // BLOCK

    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), "float32"), y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, threads=256) as row:
            value = T.alloc_fragment((1, BLOCK), "float32")
            largest = T.alloc_fragment((1,), "float32")
            before = T.alloc_fragment((1,), "float32")
            part = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            for step in T.serial(steps):
                for i, j in T.Parallel(1, BLOCK):
                    value[i, j] = T.if_then_else(
                        step * BLOCK + j < columns, x[row + i, step * BLOCK + j], -T.infinity("float32")
                    )
                for i in T.Parallel(1):
                    before[i] = largest[i]
                T.reduce_max(value, largest, dim=1, clear=False)
                for i, j in T.Parallel(1, BLOCK):
                    value[i, j] = T.exp(value[i, j] - largest[i])
                T.reduce_sum(value, part, dim=1)
                for i in T.Parallel(1):
                    total[i] = total[i] * T.exp(before[i] - largest[i]) + part[i]
            for step in T.serial(steps):
                for i, j in T.Parallel(1, BLOCK):
                    if step * BLOCK + j < columns:
                        y[row + i, step * BLOCK + j] = T.exp(x[row + i, step * BLOCK + j] - largest[i]) / total[i]

    return kernel


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax(*x.shape)(x, y)
        return y
