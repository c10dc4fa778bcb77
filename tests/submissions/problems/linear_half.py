"""A linear layer in float16; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
INPUTS = 4096
OUTPUTS = 4096

CASES = {
    "cpu": {"ROWS": 64, "INPUTS": 200, "OUTPUTS": 150},
    "odd": {"ROWS": 1, "INPUTS": 33, "OUTPUTS": 17},
}


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, INPUTS).half()]


def get_init_inputs() -> list:
    return [INPUTS, OUTPUTS]
