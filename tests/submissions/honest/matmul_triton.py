"""Matrix product in Triton, in IEEE float32.

problem: L1_1_Square_matrix_multiplication_
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, n, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, DEPTH):
        k = start + tl.arange(0, DEPTH)
        left = tl.load(a + row[:, None] * n + k, mask=(row[:, None] < n) & (k < n), other=0.0)
        right = tl.load(b + k[:, None] * n + column, mask=(k[:, None] < n) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row[:, None] * n + column, total, mask=(row[:, None] < n) & (column < n))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        n = A.shape[0]
        out = torch.empty_like(A)
        blocks = triton.cdiv(n, 64)
        matmul[(blocks, blocks)](A, B, out, n, BLOCK=64, DEPTH=32)
        return out
