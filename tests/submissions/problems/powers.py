"""Each column times a power of two, which is exact; one of 32 is large. Few elements on a CPU."""

import torch
import torch.nn as nn

ROWS = 1048576
COLUMNS = 32

CASES = {"cpu": {"ROWS": 30}}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.cat((torch.ones(COLUMNS - 1), torch.tensor([1024.0]))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list:
    return []
