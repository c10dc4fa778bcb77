"""Two-dimensional convolution (cross-correlation) of square maps with square kernels.

    y[b, o, i, j] = sum over c, r, s of conv2d.weight[o, c, r, s] * x[b, c, i + r, j + s]

x is (batch_size, in_channels, height, width), `conv2d.weight` is (out_channels, in_channels, kernel_size,
kernel_size), y is (batch_size, out_channels, height - kernel_size + 1, width - kernel_size + 1), all float32 and
contiguous; height equals width. The constructor takes in_channels, out_channels and kernel_size; the rest of its
arguments keep their defaults in every case (stride 1, no padding, dilation 1, one group, no bias). All sizes vary
between cases.
Differs from KernelBench: inputs are signed; the maps are smaller.
"""

import torch
import torch.nn as nn

batch_size = 16
in_channels = 16
out_channels = 128
kernel_size = 3
width = 256
height = 256

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "out_channels": 32, "width": 96, "height": 96},
    "odd": {"batch_size": 3, "in_channels": 5, "out_channels": 13, "width": 37, "height": 37},
    "large_kernel": {"batch_size": 1, "in_channels": 3, "out_channels": 8, "kernel_size": 7, "width": 48, "height": 48},
    "pointwise": {"batch_size": 2, "in_channels": 40, "out_channels": 24, "kernel_size": 1, "width": 20, "height": 20},
}
TAGS: tuple[str, ...] = ("conv", "image")


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
        dilation: int = 1, groups: int = 1, bias: bool = False,
    ):  # fmt: skip
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, out_channels, (kernel_size, kernel_size), stride, padding, dilation, groups, bias
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size]
