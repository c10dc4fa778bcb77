"""A linear layer, division by a constant, and exact GELU.

    z = (x W^T + bias) / divisor
    y = z / 2 * (1 + erf(z / sqrt(2)))

x is (batch_size, input_size), W (`linear.weight`) is (output_size, input_size), bias (`linear.bias`) is (output_size,),
y is (batch_size, output_size), all float32 and contiguous. The tanh approximation of GELU is not accepted. The
constructor takes input_size, output_size and divisor. The three sizes and divisor vary between cases.
Differs from KernelBench: inputs are signed and wide, so that the curved part of GELU matters after the division.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 1024
input_size = 8192
output_size = 8192
divisor = 10.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 128, "input_size": 1024, "output_size": 1024},
    "odd": {"batch_size": 61, "input_size": 253, "output_size": 509, "divisor": -7.0},
    "single": {"batch_size": 1, "input_size": 2000, "output_size": 1000},
    "shallow": {"batch_size": 300, "input_size": 12, "output_size": 200, "divisor": 16.0},
}
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, input_size: int, output_size: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x) / self.divisor)


def get_inputs() -> list[torch.Tensor]:
    return [20 * torch.randn(batch_size, input_size)]


def get_init_inputs() -> list:
    return [input_size, output_size, divisor]
