"""A two-dimensional convolution, scaled tanh, a second bias, and max pooling.

    z[b, o, i, j] = conv.bias[o] + sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    t[b, o, i, j] = scaling_factor * tanh(z[b, o, i, j]) + bias[o, 0, 0]
    y[b, o, i, j] = max over r, s in [0, P) of t[b, o, P i + r, P j + s]

with P = pool_kernel_size. x is (batch_size, in_channels, height, width), `conv.weight` is (out_channels, in_channels,
kernel_size, kernel_size), `conv.bias` is (out_channels,), `bias` is (out_channels, 1, 1). The convolution has no
padding; y is (batch_size, out_channels, (height - kernel_size + 1) // P, (width - kernel_size + 1) // P): rows and
columns left over at the end are not used. All float32 and contiguous. The constructor takes in_channels, out_channels,
kernel_size, scaling_factor, bias_shape, the tuple (out_channels, 1, 1), and pool_kernel_size. All sizes and
scaling_factor, which may be negative, vary between cases.
Differs from KernelBench: inputs are signed; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 32
in_channels = 8
out_channels = 64
height = 256
width = 256
kernel_size = 3
scaling_factor = 2.0
bias_shape = (out_channels, 1, 1)
pool_kernel_size = 4

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "out_channels": 32, "height": 82, "width": 66},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 13, "height": 31, "width": 37, "pool_kernel_size": 3},
    "negative": {"batch_size": 2, "out_channels": 6, "height": 40, "width": 50, "scaling_factor": -1.5},
    "strip": {"batch_size": 1, "in_channels": 4, "out_channels": 6, "height": 6, "width": 999},
}
TAGS: tuple[str, ...] = ("conv", "activation", "fused")
# with wide inputs tanh is -1 or 1, and the maxima hardly depend on the input
DISTRIBUTIONS = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, scaling_factor: float, bias_shape: tuple,
        pool_kernel_size: int,
    ):  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scaling_factor = scaling_factor
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.max_pool = nn.MaxPool2d(pool_kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.conv(x)) * self.scaling_factor
        return self.max_pool(x + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, scaling_factor, bias_shape, pool_kernel_size]
