"""A linear layer, the mean of every few neighbouring features, scaled exact GELU, and the largest value of each row.

    z = x W^T + bias
    a[b, i] = 1 / P * (z[b, P i] + ... + z[b, P i + P - 1])
    g = scale_factor * a / 2 * (1 + erf(a / sqrt(2)))
    y[b] = max over i of g[b, i]

with P = pool_kernel_size and i in [0, out_features // P): features left over at the end are not used. x is
(batch_size, in_features), W (`matmul.weight`) is (out_features, in_features), bias (`matmul.bias`) is (out_features,),
y is (batch_size,), all float32 and contiguous. The constructor takes in_features, out_features, pool_kernel_size and
scale_factor, which may be negative. All sizes and scale_factor vary between cases.
Differs from KernelBench: inputs are signed and wider, and the rows of x differ in scale, because the largest of
so many values would otherwise be nearly the same in every row.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 1024
in_features = 8192
out_features = 8192
pool_kernel_size = 16
scale_factor = 2.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 128, "in_features": 1024, "out_features": 1024},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 509, "pool_kernel_size": 3},
    "single": {"batch_size": 1, "in_features": 2000, "out_features": 1000, "pool_kernel_size": 4},
    "negative": {"batch_size": 90, "in_features": 100, "out_features": 12, "pool_kernel_size": 4, "scale_factor": -3.0},
}
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, pool_kernel_size: int, scale_factor: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.avg_pool = nn.AvgPool1d(pool_kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.avg_pool(self.matmul(x).unsqueeze(1)).squeeze(1)
        return (F.gelu(x) * self.scale_factor).amax(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(batch_size, in_features) * (0.25 + 1.5 * torch.rand(batch_size, 1))]


def get_init_inputs() -> list:
    return [in_features, out_features, pool_kernel_size, scale_factor]
