"""Multiply two square matrices: C = A B.

    C[i, j] = sum over k of A[i, k] * B[k, j]

A, B and C are (N, N), float32, contiguous. N varies between cases; nothing else does. There are no parameters.
Differs from KernelBench: inputs are signed, because the sum of 4096 positive numbers is nearly the same everywhere.
"""

import torch
import torch.nn as nn

N = 4096

CASES: dict[str, dict] = {
    "cpu": {"N": 640},
    "odd": {"N": 509},
    "small": {"N": 24},
}
HIDDEN: dict[str, dict] = {"other": {"N": 331}}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs() -> list:
    return []
