"""A linear layer and a ReLU; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
INPUTS = 2048
OUTPUTS = 4096

CASES = {
    "cpu": {"ROWS": 64, "INPUTS": 200, "OUTPUTS": 150},
    "square": {"ROWS": 48, "INPUTS": 48, "OUTPUTS": 48},
}


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs() -> list:
    return [INPUTS, OUTPUTS]
