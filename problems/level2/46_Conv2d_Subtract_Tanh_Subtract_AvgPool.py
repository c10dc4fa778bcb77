"""A two-dimensional convolution, tanh between two subtractions, and average pooling.

    z[b, o, i, j] = conv.bias[o] + sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    t = tanh(z - subtract1_value) - subtract2_value
    y[b, o, i, j] = 1 / P^2 * sum over r, s in [0, P) of t[b, o, P i + r, P j + s]

with P = kernel_size_pool. x is (batch_size, in_channels, height, width), `conv.weight` is (out_channels, in_channels,
kernel_size, kernel_size), `conv.bias` is (out_channels,). The convolution has no padding; y is (batch_size,
out_channels, (height - kernel_size + 1) // P, (width - kernel_size + 1) // P): rows and columns left over at the end
are not used. All float32 and contiguous. The constructor takes in_channels, out_channels, kernel_size,
subtract1_value, subtract2_value and kernel_size_pool. The sizes and both values vary between cases.
Differs from KernelBench: inputs are signed; the batch is smaller, with fewer channels.
"""

import torch
import torch.nn as nn

batch_size = 64
in_channels = 32
out_channels = 64
height = 128
width = 128
kernel_size = 3
subtract1_value = 0.5
subtract2_value = 0.2
kernel_size_pool = 2

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 66, "width": 50},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 13, "height": 31, "width": 37, "subtract1_value": -0.4},
    "threes": {"batch_size": 2, "in_channels": 3, "out_channels": 8, "height": 30, "width": 100, "kernel_size_pool": 3},
    "strip": {"batch_size": 1, "in_channels": 4, "out_channels": 6, "height": 4, "width": 999, "subtract2_value": 1.5},
}
TAGS: tuple[str, ...] = ("conv", "activation", "fused")


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, subtract1_value: float, subtract2_value: float,
        kernel_size_pool: int,
    ):  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract1_value = subtract1_value
        self.subtract2_value = subtract2_value
        self.avgpool = nn.AvgPool2d(kernel_size_pool)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.conv(x) - self.subtract1_value)
        return self.avgpool(x - self.subtract2_value)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, subtract1_value, subtract2_value, kernel_size_pool]
