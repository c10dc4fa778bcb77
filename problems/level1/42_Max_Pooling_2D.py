"""Two-dimensional max pooling with stride, padding and dilation.

    y[b, c, i, j] = max over r, s in [0, kernel_size) of x[b, c, i * stride - padding + r * dilation,
                                                               j * stride - padding + s * dilation]

Positions outside the map do not count (they are not zeros). x is (batch_size, channels, height, width),
y is (batch_size, channels, height_out, width_out) with

    height_out = (height + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1,    width_out likewise,

both float32 and contiguous. padding is at most kernel_size // 2. The constructor takes kernel_size, stride, padding
and dilation. These four and all sizes vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed, so that zeros for padding would win; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 16
channels = 64
height = 512
width = 512
kernel_size = 4
stride = 1
padding = 1
dilation = 1

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "channels": 16, "height": 160, "width": 128},
    "odd": {"batch_size": 3, "channels": 5, "height": 61, "width": 83, "kernel_size": 3, "stride": 2},
    "dilated": {"channels": 3, "height": 64, "width": 50, "kernel_size": 2, "stride": 2, "dilation": 3},
    "strip": {"batch_size": 1, "channels": 2, "height": 4, "width": 3000, "stride": 3, "padding": 2},
}
TAGS: tuple[str, ...] = ("pooling", "image")


class Model(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.maxpool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding, dilation=dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.maxpool(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs() -> list:
    return [kernel_size, stride, padding, dilation]
