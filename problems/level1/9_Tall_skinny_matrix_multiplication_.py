"""Multiply a tall narrow matrix with a wide flat one: C = A B, which is large and square.

    C[i, j] = sum over k of A[i, k] * B[k, j]

A is (M, N), B is (N, M), C is (M, M), all float32 and contiguous, with N much smaller than M: most of the traffic is
the writing of C. M and N vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed; M and N are smaller.
"""

import torch
import torch.nn as nn

M = 18432
N = 16

CASES: dict[str, dict] = {
    "cpu": {"M": 2048, "N": 16},
    "odd": {"M": 1021, "N": 15},
    "outer": {"M": 700, "N": 1},
    "deep": {"M": 400, "N": 100},
}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, N), torch.randn(N, M)]


def get_init_inputs() -> list:
    return []
