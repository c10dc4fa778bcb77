"""A two-dimensional convolution, normalisation in groups of channels, scaling, max pooling, and clamping.

    z[b, o, i, j] = conv.bias[o] + sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    n[b, o, i, j] = (z[b, o, i, j] - mean[b, g]) / sqrt(var[b, g] + 1e-5) * group_norm.weight[o] + group_norm.bias[o]
    t[b, o, i, j] = scale[o, 0, 0] * n[b, o, i, j]
    y[b, o, i, j] = min(max(u[b, o, i, j], clamp_min), clamp_max),
    u[b, o, i, j] = max over r, s in [0, P) of t[b, o, P i + r, P j + s]

with P = maxpool_kernel_size; g is the group of channel o (num_groups groups of out_channels / num_groups channels in a
row), and mean[b, g] and var[b, g] are the mean and the biased variance of z over all channels and places of that
group in sample b. x is (batch_size, in_channels, height, width), `conv.weight` is (out_channels, in_channels,
kernel_size, kernel_size); `conv.bias`, `group_norm.weight` and `group_norm.bias` are (out_channels,), `scale` is
(out_channels, 1, 1). The convolution has no padding; y is (batch_size, out_channels, (height - kernel_size + 1) // P,
(width - kernel_size + 1) // P): rows and columns left over at the end are not pooled, but they count in mean and var.
All float32 and contiguous. The constructor takes in_channels, out_channels, kernel_size, num_groups, scale_shape, the
tuple (out_channels, 1, 1), maxpool_kernel_size, clamp_min and clamp_max. All vary between cases.
Differs from KernelBench: inputs are signed and small, so that 1e-5 matters; windows of 2 and a maximum of 1.5 keep the
output from being clamped nearly everywhere; scale is drawn at random; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 64
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
num_groups = 16
scale_shape = (out_channels, 1, 1)
maxpool_kernel_size = 2
clamp_min = 0.0
clamp_max = 1.5

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 8, "out_channels": 32, "height": 66, "width": 50},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 15, "height": 31, "width": 37, "num_groups": 5},
    "one_group": {"batch_size": 2, "in_channels": 3, "out_channels": 6, "height": 29, "width": 50, "num_groups": 1},
    "threes": {
        "batch_size": 1, "out_channels": 8, "height": 21, "width": 99, "num_groups": 4, "maxpool_kernel_size": 3,
        "clamp_min": -0.25, "clamp_max": 2.0,
    },
}  # fmt: skip
TAGS: tuple[str, ...] = ("conv", "fused")


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int, scale_shape: tuple,
        maxpool_kernel_size: int, clamp_min: float, clamp_max: float,
    ):  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(1 + 0.3 * torch.randn(scale_shape))
        self.maxpool = nn.MaxPool2d(maxpool_kernel_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.group_norm(self.conv(x)) * self.scale)
        return torch.clamp(x, self.clamp_min, self.clamp_max)


def get_inputs() -> list[torch.Tensor]:
    return [0.05 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max]
