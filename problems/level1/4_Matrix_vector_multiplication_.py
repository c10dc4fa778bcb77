"""Multiply a matrix with a column vector: C = A B.

    C[i, 0] = sum over k of A[i, k] * B[k, 0]

A is (M, K), B is (K, 1), C is (M, 1), all float32 and contiguous. K is much larger than M in the main case. M and K
vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed; the rows are shorter.
"""

import torch
import torch.nn as nn

M = 2048
K = 163840

CASES: dict[str, dict] = {
    "cpu": {"M": 128, "K": 40960},
    "odd": {"M": 63, "K": 8191},
    "few": {"M": 16, "K": 50000},
    "tall": {"M": 20000, "K": 33},
}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, 1)]


def get_init_inputs() -> list:
    return []
