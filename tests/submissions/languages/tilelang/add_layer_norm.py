"""Sum and layer norm of a row in TileLang; the sum stays in registers.

problem: L3_109_ResidualAddLayerNorm
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
def add_layer_norm(rows, columns, eps):
    block = 1 << (columns - 1).bit_length()

    @T.prim_func
    def kernel(
        x: T.Tensor((rows, columns), "bfloat16"),
        residual: T.Tensor((rows, columns), "bfloat16"),
        weight: T.Tensor((columns,), "bfloat16"),
        bias: T.Tensor((columns,), "bfloat16"),
        y: T.Tensor((rows, columns), "bfloat16"),
        s: T.Tensor((rows, columns), "bfloat16"),
    ):
        with T.Kernel(rows, threads=256) as row:
            value = T.alloc_fragment((1, block), "float32")
            square = T.alloc_fragment((1, block), "float32")
            mean = T.alloc_fragment((1,), "float32")
            variance = T.alloc_fragment((1,), "float32")
            for i, j in T.Parallel(1, block):
                value[i, j] = 0.0
                if j < columns:
                    left = T.cast(x[row + i, j], "float32")
                    right = T.cast(residual[row + i, j], "float32")
                    value[i, j] = T.cast(T.cast(left + right, "bfloat16"), "float32")
                    s[row + i, j] = T.cast(value[i, j], "bfloat16")
            T.reduce_sum(value, mean, dim=1)
            for i, j in T.Parallel(1, block):
                value[i, j] = T.if_then_else(j < columns, value[i, j] - mean[i] / columns, 0.0)
            for i, j in T.Parallel(1, block):
                square[i, j] = value[i, j] * value[i, j]
            T.reduce_sum(square, variance, dim=1)
            for i, j in T.Parallel(1, block):
                if j < columns:
                    scaled = value[i, j] * T.rsqrt(variance[i] / columns + eps) * T.cast(weight[j], "float32")
                    y[row + i, j] = T.cast(scaled + T.cast(bias[j], "float32"), "bfloat16")

    return kernel


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x, residual):
        y, s = torch.empty_like(x), torch.empty_like(x)
        add_layer_norm(*x.shape, self.norm.eps)(x, residual, self.norm.weight, self.norm.bias, y, s)
        return y, s
