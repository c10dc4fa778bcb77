"""Matrix product in Triton by the fastest of three tilings, timed by hand with CUDA events at the first call of a size.

problem: matmul.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

VARIANTS = (
    dict(BM=64, BN=64, BK=32, num_warps=4, num_stages=3),
    dict(BM=128, BN=64, BK=32, num_warps=8, num_stages=3),
    dict(BM=128, BN=128, BK=16, num_warps=8, num_stages=4),
)


@triton.jit
def matmul(a, b, c, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, n, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * n + k[None, :], mask=(m[:, None] < n) & (k[None, :] < n), other=0.0)
        right = tl.load(b + k[:, None] * n + j[None, :], mask=(k[:, None] < n) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + m[:, None] * n + j[None, :], total, mask=(m[:, None] < n) & (j[None, :] < n))


def launch(variant: dict, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> None:
    n = A.shape[0]
    matmul[(triton.cdiv(n, variant["BM"]), triton.cdiv(n, variant["BN"]))](A, B, C, n, **variant)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.chosen = {}

    def tune(self, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> dict:
        best, least = VARIANTS[0], float("inf")
        for variant in VARIANTS:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            launch(variant, A, B, C)
            start.record()
            launch(variant, A, B, C)
            stop.record()
            stop.synchronize()
            taken = start.elapsed_time(stop)
            print(f"{variant}: {taken:.3f} ms")
            if taken < least:
                best, least = variant, taken
        return best

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        if A.shape not in self.chosen:
            self.chosen[A.shape] = self.tune(A, B, C)
        launch(self.chosen[A.shape], A, B, C)
        return C
