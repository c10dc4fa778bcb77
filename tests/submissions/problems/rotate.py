"""Turn every row of a complex matrix by an angle of its own; complex in and out, and small on a CPU."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 500, "COLUMNS": 600}, "odd": {"ROWS": 37, "COLUMNS": 129}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return x * torch.complex(angle.cos(), angle.sin())[:, None]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.complex64), 3 * torch.randn(ROWS)]


def get_init_inputs() -> list:
    return []
