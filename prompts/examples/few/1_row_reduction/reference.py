"""The largest magnitude of each row, for x of (rows, columns), float32; y is (rows,)."""

import torch
from torch import nn

rows = 8192
columns = 16384

CASES = {
    "cpu": {"rows": 200, "columns": 3000},
    "odd": {"rows": 131, "columns": 257},
    "single": {"rows": 1, "columns": 3000},
}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs().amax(dim=1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
