"""Softmax along the rows of a matrix; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 300, "COLUMNS": 500}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
