"""Product of bfloat16 matrices in Triton, on tensor cores.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        x = tl.load(a + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + i * N + j, total.to(tl.bfloat16), mask=(i < M) & (j < N))


class ModelNew(nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        C = A.new_empty(M, N)
        grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
        matmul[grid](A, B, C, M, N, K, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
        return C
