"""The sum of every column, over enough rows that the order of the additions shows; small on a CPU."""

import torch
import torch.nn as nn

ROWS = 32768
COLUMNS = 4096

CASES = {"cpu": {"ROWS": 3000, "COLUMNS": 200}, "tall": {"ROWS": 20_000, "COLUMNS": 3}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
