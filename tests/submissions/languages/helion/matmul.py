"""Product of bfloat16 matrices in Helion, on tensor cores.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: correct
"""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[128, 128, 64], num_warps=8, num_stages=3))
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    m, k = a.size()
    n = b.size(1)
    c = torch.empty([m, n], dtype=a.dtype, device=a.device)
    for i, j in hl.tile([m, n]):
        total = hl.zeros([i, j], dtype=torch.float32)
        for inner in hl.tile(k):
            total = torch.addmm(total, a[i, inner], b[inner, j])
        c[i, j] = total.to(a.dtype)
    return c


class ModelNew(nn.Module):
    def forward(self, A, B):
        return matmul(A, B)
