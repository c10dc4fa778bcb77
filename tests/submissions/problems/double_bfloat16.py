"""Twice every element, in bfloat16: exact. Small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 16384

CASES = {"cpu": {"ROWS": 300, "COLUMNS": 500}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.bfloat16)]


def get_init_inputs() -> list:
    return []
