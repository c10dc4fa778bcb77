"""The Euclidean norm of every row, one value per row; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 16384
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 700, "COLUMNS": 900}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
