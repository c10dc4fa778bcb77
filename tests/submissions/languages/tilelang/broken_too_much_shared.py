"""Allocates more shared memory than there is.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: runtime/exception or compile/jit
"""

import functools

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@functools.cache
@tilelang.jit
def matmul(M, N, K):
    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")
    ):
        with T.Kernel(T.ceildiv(N, 256), T.ceildiv(M, 256), threads=256) as (bx, by):
            a = T.alloc_shared((256, 512), "bfloat16")
            b = T.alloc_shared((512, 256), "bfloat16")
            total = T.alloc_fragment((256, 256), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(K, 512), num_stages=3):
                T.copy(A[by * 256, k * 512], a)
                T.copy(B[k * 512, bx * 256], b)
                T.gemm(a, b, total)
            T.copy(total, C[by * 256, bx * 256])

    return kernel


class ModelNew(nn.Module):
    def forward(self, A, B):
        C = A.new_empty(A.shape[0], B.shape[1])
        matmul(A.shape[0], B.shape[1], A.shape[1])(A, B, C)
        return C
