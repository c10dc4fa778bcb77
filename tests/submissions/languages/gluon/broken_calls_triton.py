"""Calls a function of Triton that Gluon lacks.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: compile/jit
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def matmul(a, b, c, M, N, K, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, BLOCK, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))[None, :]
    x = gl.load(a + i * K + j, mask=(i < M) & (j < K), other=0.0)
    z = gl.load(b + i * N + j, mask=(i < K) & (j < N), other=0.0)
    gl.store(c + i * N + j, gl.dot(x, z), mask=(i < M) & (j < N))


class ModelNew(nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        C = A.new_empty(M, B.shape[1])
        matmul[(1,)](A, B, C, M, B.shape[1], K, BLOCK=64, num_warps=4)
        return C
