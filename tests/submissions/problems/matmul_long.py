"""Multiply two square matrices; on a CPU as large as it takes to be timed beside other processes."""

import torch
import torch.nn as nn

N = 4096

CASES = {"cpu": {"N": 1024}}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs() -> list:
    return []
