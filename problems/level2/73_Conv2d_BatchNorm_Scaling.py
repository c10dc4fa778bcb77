"""A two-dimensional convolution, normalisation of every channel over the batch, and scaling.

    z[b, o, i, j] = sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    y[b, o, i, j] = scaling_factor * ((z[b, o, i, j] - mean[o]) / sqrt(var[o] + 1e-5) * bn.weight[o] + bn.bias[o])

where mean[o] and var[o] are the mean and the biased variance of z[b, o, i, j] over b, i and j: always those of the
current batch; running statistics are not kept. x is (batch_size, in_channels, height, width), `conv.weight` is
(out_channels, in_channels, kernel_size, kernel_size), `bn.weight` and `bn.bias` are (out_channels,), y is (batch_size,
out_channels, height - kernel_size + 1, width - kernel_size + 1). All float32 and contiguous. The constructor takes
in_channels, out_channels, kernel_size and scaling_factor. All sizes and scaling_factor vary between cases.
Differs from KernelBench: no running statistics; the convolution has no bias, since the normalisation would cancel
it; inputs are signed and small, so that 1e-5 matters; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 64
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
scaling_factor = 2.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 8, "out_channels": 32, "height": 66, "width": 50},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 13, "height": 31, "width": 37, "scaling_factor": -0.6},
    "single": {"batch_size": 1, "in_channels": 3, "out_channels": 5, "height": 20, "width": 24},
    "strip": {"batch_size": 6, "in_channels": 4, "out_channels": 6, "height": 5, "width": 400, "kernel_size": 5},
}
TAGS: tuple[str, ...] = ("conv", "fused")


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scaling_factor: float):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.bn = nn.BatchNorm2d(out_channels, track_running_stats=False)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)) * self.scaling_factor


def get_inputs() -> list[torch.Tensor]:
    return [0.05 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, scaling_factor]
