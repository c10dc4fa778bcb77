"""Product of bfloat16 matrices in cuTile, on tensor cores.

problem: matmul_bfloat16.py
device: cuda
rules: kernel
expect: correct
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def matmul(a, b, c, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((M, N), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        x = ct.load(a, index=(i, k), shape=(M, K), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, index=(k, j), shape=(K, N), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(x, y, total)
    ct.store(c, index=(i, j), tile=ct.astype(total, ct.bfloat16))


class ModelNew(nn.Module):
    def forward(self, A, B):
        C = A.new_empty(A.shape[0], B.shape[1])
        grid = (ct.cdiv(A.shape[0], 128), ct.cdiv(B.shape[1], 128))
        ct.launch(torch.cuda.current_stream(), grid, matmul, (A, B, C, 128, 128, 64))
        return C
