"""A product of two linear layers, one of them gated by SiLU, in bfloat16; small on a CPU, so that a test is quick."""

import torch
import torch.nn as nn

ROWS = 8192
INPUTS = 2048
OUTPUTS = 4096

CASES = {
    "cpu": {"ROWS": 64, "INPUTS": 160, "OUTPUTS": 120},
    "odd": {"ROWS": 3, "INPUTS": 33, "OUTPUTS": 17},
}


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.gate = nn.Linear(inputs, outputs, bias=False).bfloat16()
        self.up = nn.Linear(inputs, outputs, bias=False).bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.gate(x)) * self.up(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, INPUTS).bfloat16()]


def get_init_inputs() -> list:
    return [INPUTS, OUTPUTS]
