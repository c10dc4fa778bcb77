"""Multiply two square matrices; small on a CPU, so that a test is quick, and still long enough to be timed."""

import torch
import torch.nn as nn

N = 4096

CASES = {"cpu": {"N": 320}, "odd": {"N": 67}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs() -> list:
    return []
