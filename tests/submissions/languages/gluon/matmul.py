"""Product of bfloat16 matrices in Gluon, on tensor cores through registers.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2


@gluon.jit
def matmul(a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    tiles: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [8, 1], [1, 0])
    sums: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[4, 2], instr_shape=[16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, sums, 2)
    i = gl.program_id(0) * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, tiles))[:, None]
    j = gl.program_id(1) * BN + gl.arange(0, BN, layout=gl.SliceLayout(0, tiles))[None, :]
    across = gl.arange(0, BK, layout=gl.SliceLayout(0, tiles))[None, :]
    down = gl.arange(0, BK, layout=gl.SliceLayout(1, tiles))[:, None]
    total = gl.zeros([BM, BN], gl.float32, sums)
    for k in range(0, K, BK):
        x = gl.load(a + i * K + k + across, mask=(i < M) & (k + across < K), other=0.0)
        y = gl.load(b + (k + down) * N + j, mask=(k + down < K) & (j < N), other=0.0)
        total = mma_v2(gl.convert_layout(x, left), gl.convert_layout(y, right), total)
    i = gl.program_id(0) * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, sums))[:, None]
    j = gl.program_id(1) * BN + gl.arange(0, BN, layout=gl.SliceLayout(0, sums))[None, :]
    gl.store(c + i * N + j, total.to(gl.bfloat16), mask=(i < M) & (j < N))


class ModelNew(nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        C = A.new_empty(M, N)
        grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
        matmul[grid](A, B, C, M, N, K, BM=128, BN=128, BK=32, num_warps=8)
        return C
