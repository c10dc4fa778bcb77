"""Depthwise two-dimensional convolution (cross-correlation): each channel has its own square kernel.

    y[b, c, i, j] = sum over r, s of conv2d.weight[c, 0, r, s] * x[b, c, i * stride - padding + r,
                                                                        j * stride - padding + s]

with zeros outside the map. x is (batch_size, in_channels, height, width), `conv2d.weight` is (in_channels, 1,
kernel_size, kernel_size), y is (batch_size, in_channels, height_out, width_out) with

    height_out = (height + 2 * padding - kernel_size) // stride + 1,    width_out likewise,

all float32 and contiguous; height equals width. The constructor takes in_channels, kernel_size, stride and padding;
bias keeps its default (there is none). These four, the batch and the map vary between cases.
Differs from KernelBench: inputs are signed.
"""

import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
kernel_size = 3
width = 512
height = 512
stride = 1
padding = 0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "width": 128, "height": 128},
    "odd": {"batch_size": 3, "in_channels": 7, "width": 61, "height": 61},
    "strided": {"batch_size": 2, "in_channels": 10, "width": 50, "height": 50, "stride": 2, "padding": 1},
    "wide_kernel": {"batch_size": 1, "in_channels": 4, "kernel_size": 5, "width": 90, "height": 90, "padding": 2},
}
TAGS: tuple[str, ...] = ("conv", "image")


class Model(nn.Module):
    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(
            in_channels, in_channels, kernel_size, stride=stride, padding=padding, groups=in_channels, bias=bias
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv2d(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, kernel_size, stride, padding]
