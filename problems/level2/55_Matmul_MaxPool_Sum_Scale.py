"""A linear layer, maxima of groups of neighbouring features, and their scaled sum.

    z = x W^T + bias
    y[b] = scale_factor * sum over i of max(z[b, P i], ..., z[b, P i + P - 1])

with P = kernel_size and i in [0, out_features // P): features left over at the end are not used. x is (batch_size,
in_features), W (`matmul.weight`) is (out_features, in_features), bias (`matmul.bias`) is (out_features,), y is
(batch_size,), all float32 and contiguous. The constructor takes in_features, out_features, kernel_size and
scale_factor. All sizes and scale_factor vary between cases.
Differs from KernelBench: inputs are signed, and the rows of x differ in scale, because sums of so many maxima
would otherwise be nearly equal; W is smaller, the batch larger.
"""

import torch
import torch.nn as nn

batch_size = 512
in_features = 8192
out_features = 8192
kernel_size = 2
scale_factor = 0.5

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 128, "in_features": 1024, "out_features": 1536},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 509, "kernel_size": 3, "scale_factor": -0.2},
    "small": {"batch_size": 128, "in_features": 10, "out_features": 5},
    "few": {"batch_size": 3, "in_features": 1000, "out_features": 2000, "kernel_size": 16, "scale_factor": 1.5},
}
TAGS: tuple[str, ...] = ("matmul", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, kernel_size: int, scale_factor: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.max_pool(self.matmul(x).unsqueeze(1)).squeeze(1)
        return x.sum(dim=1) * self.scale_factor


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_features) * (0.25 + 1.5 * torch.rand(batch_size, 1))]


def get_init_inputs() -> list:
    return [in_features, out_features, kernel_size, scale_factor]
