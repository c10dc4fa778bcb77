"""Each element from its neighbors, which are read through the cache, with conditions at the edges."""

import functools

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@functools.cache
@tilelang.jit
def leapfrog(height, width, coeff, ROWS=4, COLUMNS=256):
    @T.prim_func
    def kernel(
        now: T.Tensor((height, width), "float32"),
        before: T.Tensor((height, width), "float32"),
        out: T.Tensor((height, width), "float32"),
    ):
        with T.Kernel(T.ceildiv(width, COLUMNS), T.ceildiv(height, ROWS), threads=256) as (bx, by):
            for a, b in T.Parallel(ROWS, COLUMNS):
                i = by * ROWS + a
                j = bx * COLUMNS + b
                if i < height and j < width:
                    if i > 0 and i < height - 1 and j > 0 and j < width - 1:
                        around = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
                        out[i, j] = 2.0 * now[i, j] - before[i, j] + coeff * (around - 4.0 * now[i, j])
                    else:
                        out[i, j] = 0.0

    return kernel


class ModelNew(nn.Module):
    def __init__(self, c: float = 1.0, dt: float = 0.01, dx: float = 0.1):
        super().__init__()
        self.coeff = (c * dt / dx) ** 2

    def forward(self, u_curr, u_prev):
        out = torch.empty_like(u_curr)
        leapfrog(*u_curr.shape, self.coeff)(u_curr, u_prev, out)
        return out
