"""Product of bfloat16 matrices in TileLang, on tensor cores with a pipeline through shared memory.

problem: matmul_bfloat16.py
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
def matmul(M, N, K, BM=128, BN=128, BK=64):
    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            a = T.alloc_shared((BM, BK), "bfloat16")
            b = T.alloc_shared((BK, BN), "bfloat16")
            total = T.alloc_fragment((BM, BN), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=3):
                T.copy(A[by * BM, k * BK], a)
                T.copy(B[k * BK, bx * BN], b)
                T.gemm(a, b, total)
            T.copy(total, C[by * BM, bx * BN])

    return kernel


class ModelNew(nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        C = A.new_empty(M, N)
        matmul(M, N, K)(A, B, C)
        return C
