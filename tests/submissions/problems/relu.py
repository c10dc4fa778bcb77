"""The positive part of every element. As good as none is negative. Quick on a CPU."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 1000, "COLUMNS": 1000}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def get_inputs() -> list[torch.Tensor]:
    rare = torch.rand(ROWS, COLUMNS) < 2**-12  # were none negative, no input would be
    return [torch.rand(ROWS, COLUMNS) - rare.float()]


def get_init_inputs() -> list:
    return []
