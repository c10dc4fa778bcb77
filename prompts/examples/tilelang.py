import functools

import tilelang
import tilelang.language as T
import torch
from torch import nn


@functools.cache
@tilelang.jit
def squared_difference(count, block=1024):
    @T.prim_func
    def kernel(
        a: T.Tensor((count,), "float32"),
        b: T.Tensor((count,), "float32"),
        out: T.Tensor((count,), "float32"),
    ):
        with T.Kernel(T.ceildiv(count, block), threads=256) as bx:
            for i in T.Parallel(block):
                difference = a[bx * block + i] - b[bx * block + i]
                out[bx * block + i] = difference * difference

    return kernel


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        squared_difference(out.numel())(a.view(-1), b.view(-1), out.view(-1))
        return out
