"""Multiply two matrices of bfloat16; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
INNER = 4096
COLUMNS = 4096

CASES = {
    "cpu": {"ROWS": 48, "INNER": 256, "COLUMNS": 40},
    "odd": {"ROWS": 3, "INNER": 33, "COLUMNS": 17},
}


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, INNER).bfloat16(), torch.randn(INNER, COLUMNS).bfloat16()]


def get_init_inputs() -> list:
    return []
