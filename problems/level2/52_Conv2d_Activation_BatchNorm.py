"""A two-dimensional convolution, Mish, and normalisation of every channel over the batch.

    z[b, o, i, j] = conv.bias[o] + sum over c, r, s of conv.weight[o, c, r, s] * x[b, c, i + r, j + s]
    t = z * tanh(log(1 + exp(z)))
    y[b, o, i, j] = (t[b, o, i, j] - mean[o]) / sqrt(var[o] + eps) * bn.weight[o] + bn.bias[o]

where mean[o] and var[o] are the mean and the biased variance of t[b, o, i, j] over b, i and j: always those of the
current batch; running statistics are not kept. z may be large, so exp(z) must not overflow. x is (batch_size,
in_channels, height, width), `conv.weight` is (out_channels, in_channels, kernel_size, kernel_size); `conv.bias`,
`bn.weight` and `bn.bias` are (out_channels,); y is (batch_size, out_channels, height - kernel_size + 1, width -
kernel_size + 1). All float32 and contiguous. The constructor takes in_channels, out_channels, kernel_size, eps (1e-5)
and momentum (used by running statistics only). All sizes vary between cases; eps does not.
Differs from KernelBench: no running statistics; inputs are signed and small, so that eps matters; fewer channels.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 64
in_channels = 16
out_channels = 64
height = 128
width = 128
kernel_size = 3

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "out_channels": 32, "height": 66, "width": 50},
    "odd": {"batch_size": 3, "in_channels": 7, "out_channels": 13, "height": 31, "width": 37},
    "single": {"batch_size": 1, "in_channels": 3, "out_channels": 5, "height": 20, "width": 24},
    "strip": {"batch_size": 6, "in_channels": 4, "out_channels": 6, "height": 5, "width": 400, "kernel_size": 5},
}
TAGS: tuple[str, ...] = ("conv", "activation", "fused")
# around 4, some channels of z are negative throughout: Mish hardly leaves zero there, and rounding decides
DISTRIBUTIONS = ("own", "signed", "wide")


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum, track_running_stats=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        return self.bn(torch.tanh(F.softplus(x)) * x)


def get_inputs() -> list[torch.Tensor]:
    return [0.3 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs() -> list:
    return [in_channels, out_channels, kernel_size]
