"""The positive part of every element, and the input itself, unchanged, for a later layer to add. Quick on a CPU."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 1000, "COLUMNS": 1000}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.relu(x), x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
