"""ELU of inputs of which as good as none is negative. Their number is a power of two."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 8192

CASES = {"cpu": {"ROWS": 1024, "COLUMNS": 1024}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.elu(x)


def get_inputs() -> list[torch.Tensor]:
    rare = torch.rand(ROWS, COLUMNS) < 2**-12  # were none negative, no input would be
    return [torch.rand(ROWS, COLUMNS) - rare.float()]


def get_init_inputs() -> list:
    return []
