"""Running sums of integers along the rows; exact, and small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 500, "COLUMNS": 600}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(-1000, 1000, (ROWS, COLUMNS))]


def get_init_inputs() -> list:
    return []
