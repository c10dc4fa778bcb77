"""Launches a kernel that does nothing of use, and computes in torch by a name made up at run time.

problem: softmax.py
device: cuda
rules: kernel
expect: rules/torch_compute
"""

import functools

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@functools.cache
@tilelang.jit
def nothing(count):
    @T.prim_func
    def kernel(scratch: T.Tensor((count,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            scratch[bx] = 0.0

    return kernel


class ModelNew(nn.Module):
    def forward(self, x):
        nothing(32)(torch.empty(32, device=x.device))
        return getattr(torch, "soft" + "max")(x, dim=1)
