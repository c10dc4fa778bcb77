"""A two-dimensional convolution, instance normalisation of each map, and division by a constant.

    z[b, o, i, j] = sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    y[b, o, i, j] = (z[b, o, i, j] - mean[b, o]) / sqrt(var[b, o] + 1e-5) / divide_by

where mean[b, o] and var[b, o] are the mean and the biased variance of the map z[b, o]. x is (batch_size, in_channels,
height, width), `conv.weight` is (out_channels, in_channels, kernel_size, kernel_size), y is (batch_size,
out_channels, height - kernel_size + 1, width - kernel_size + 1), all float32 and contiguous. The constructor takes
in_channels, out_channels, kernel_size and divide_by. The sizes and divide_by vary between cases.
Differs from KernelBench: the convolution has no bias, since the normalisation would cancel it; inputs are signed
and small, so that 1e-5 matters; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 32
in_channels = 64
out_channels = 128
height = 128
width = 128
kernel_size = 3
divide_by = 2.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "in_channels": 16, "out_channels": 32, "height": 66, "width": 50},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 13, "height": 31, "width": 37, "divide_by": 0.7},
    "strip": {"batch_size": 2, "in_channels": 4, "out_channels": 6, "height": 3, "width": 2000, "divide_by": -3.0},
}
TAGS: tuple[str, ...] = ("conv", "fused")


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, divide_by: float):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.instance_norm(self.conv(x)) / self.divide_by


def get_inputs() -> list[torch.Tensor]:
    return [0.05 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, divide_by]
