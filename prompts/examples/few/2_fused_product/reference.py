"""A linear layer and the square of its ReLU, y = relu(x W^T + b)^2, for x of (rows, inputs), float32."""

import torch
from torch import nn

rows = 4096
inputs = 2048
outputs = 2048

CASES = {
    "cpu": {"rows": 200, "inputs": 256, "outputs": 192},
    "odd": {"rows": 33, "inputs": 71, "outputs": 45},
    "single": {"rows": 1, "inputs": 130, "outputs": 67},
}


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)).square()


def get_inputs():
    return [torch.randn(rows, inputs)]


def get_init_inputs():
    return [inputs, outputs]
