"""Multiply two rectangular matrices: C = A B.

    C[i, j] = sum over k of A[i, k] * B[k, j]

A is (M, K), B is (K, N), C is (M, N), all float32 and contiguous. M, K and N vary between cases; nothing else does.
There are no parameters.
Differs from KernelBench: inputs are signed, because a sum of positive numbers is nearly the same everywhere.
"""

import torch
import torch.nn as nn

M = 2048
K = 8192
N = 4096

CASES: dict[str, dict] = {
    "cpu": {"M": 256, "K": 1536, "N": 512},
    "odd": {"M": 127, "K": 509, "N": 253},
    "row": {"M": 1, "K": 1000, "N": 700},
    "shallow": {"M": 300, "K": 3, "N": 200},
}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list:
    return []
