"""Rows of a table, one for each index; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 16384
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 1500, "COLUMNS": 600}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return nn.functional.embedding(index, table)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randint(0, ROWS, (ROWS,))]


def get_init_inputs() -> list:
    return []
