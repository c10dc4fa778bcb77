"""Multiply two matrices whose sizes are not multiples of any tile size: C = A B.

    C[i, j] = sum over k of A[i, k] * B[k, j]

A is (M, K), B is (K, N), C is (M, N), all float32 and contiguous. M, K and N vary between cases; in the main case all
three are odd, so that three rows in four do not start at a multiple of 16 bytes. There are no parameters.
Differs from KernelBench: inputs are signed.
"""

import torch
import torch.nn as nn

M = 8205
K = 2949
N = 5921

CASES: dict[str, dict] = {
    "cpu": {"M": 611, "K": 749, "N": 493},
    "odd": {"M": 129, "K": 517, "N": 251},
    "outer": {"M": 333, "K": 1, "N": 77},
    "column": {"M": 523, "K": 1031, "N": 1},
}
HIDDEN: dict[str, dict] = {"other": {"M": 277, "K": 391, "N": 613}}
TAGS: tuple[str, ...] = ("matmul",)


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs() -> list:
    return []
