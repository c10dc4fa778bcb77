"""The mean of every row, repeated along the row; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 500, "COLUMNS": 600}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=1, keepdim=True).repeat(1, x.shape[1])


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
