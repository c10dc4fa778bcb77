"""Uses a variable that was never defined.

problem: softmax.py
device: cuda
rules: kernel
expect: compile/jit
"""

import functools

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@functools.cache
@tilelang.jit
def softmax(rows, columns):
    @T.prim_func
    def kernel(x: T.Tensor((rows, columns), "float32"), y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, threads=128) as row:
            total = T.alloc_fragment((1,), "float32")
            value = T.alloc_fragment((1, columns), "float32")
            T.copy(x[row, 0], value)
            T.reduce_sum(value, total, dim=1)
            for i, j in T.Parallel(1, columns):
                y[row + i, j] = T.exp(value[i, j] - maximum[i]) / total[i]

    return kernel


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax(*x.shape)(x, y)
        return y
