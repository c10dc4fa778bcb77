"""A three-dimensional convolution, softmax over the channels, and max pooling twice.

    z[b, o, d, i, j] = conv.bias[o] + sum over c, q, r, s of conv.weight[o, c, q, r, s] * x[b, c, d + q, i + r, j + s]
    p[b, o, d, i, j] = exp(z[b, o, d, i, j]) / sum over k of exp(z[b, k, d, i, j])
    y = pool(pool(p)),    pool(p)[b, o, d, i, j] = max over q, r, s in [0, P) of p[b, o, P d + q, P i + r, P j + s]

with P = pool_kernel_size. x is (batch_size, in_channels, depth, height, width), `conv.weight` is (out_channels,
in_channels, kernel_size, kernel_size, kernel_size), `conv.bias` is (out_channels,). The convolution has no padding;
each pooling divides depth, height and width by P, rounding down (what is left over at the end is not used). All
float32 and contiguous. The constructor takes in_channels, out_channels, kernel_size and pool_kernel_size. All sizes
vary between cases.
Differs from KernelBench: inputs are signed; the batch is smaller and the volumes are larger.
"""

import torch
import torch.nn as nn

batch_size = 64
in_channels = 3
out_channels = 16
depth = 24
height = 48
width = 48
kernel_size = 3
pool_kernel_size = 2

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "depth": 18, "height": 30, "width": 34},
    "odd": {"batch_size": 3, "out_channels": 7, "depth": 11, "height": 15, "width": 21},
    "flat": {"batch_size": 1, "out_channels": 5, "depth": 6, "height": 70, "width": 12},
    "threes": {"batch_size": 2, "in_channels": 2, "depth": 13, "height": 22, "width": 24, "pool_kernel_size": 3},
}
TAGS: tuple[str, ...] = ("conv", "fused")
# with wide inputs every softmax is 0 or 1, and the maxima are 1 nearly everywhere
DISTRIBUTIONS = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_kernel_size: int):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool1 = nn.MaxPool3d(pool_kernel_size)
        self.pool2 = nn.MaxPool3d(pool_kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool2(self.pool1(torch.softmax(self.conv(x), dim=1)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, depth, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size, pool_kernel_size]
