"""Multiply two batches of matrices, pair by pair.

    C[b, i, j] = sum over l of A[b, i, l] * B[b, l, j]

A is (batch_size, m, k), B is (batch_size, k, n), C is (batch_size, m, n), all float32 and contiguous. The four sizes
vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed; the batch is half as large.
"""

import torch
import torch.nn as nn

batch_size = 64
m = 512
k = 1024
n = 2048

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 16, "m": 96, "k": 256, "n": 128},
    "odd": {"batch_size": 5, "m": 63, "k": 129, "n": 95},
    "single": {"batch_size": 1, "m": 200, "k": 320, "n": 136},
    "many": {"batch_size": 3000, "m": 7, "k": 9, "n": 6},
}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A, B)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, m, k), torch.randn(batch_size, k, n)]


def get_init_inputs() -> list:
    return []
