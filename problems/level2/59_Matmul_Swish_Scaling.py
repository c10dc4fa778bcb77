"""A linear layer with Swish, scaled.

    z = x W^T + bias
    y = scaling_factor * z / (1 + exp(-z))

x is (batch_size, in_features), W (`matmul.weight`) is (out_features, in_features), bias (`matmul.bias`) is
(out_features,), y is (batch_size, out_features), all float32 and contiguous. W is far larger than x in the main case.
z may be large. The constructor takes in_features, out_features and scaling_factor. The three sizes and scaling_factor
vary between cases.
Differs from KernelBench: inputs are signed and wider; W is smaller.
"""

import torch
import torch.nn as nn

batch_size = 128
in_features = 16384
out_features = 8192
scaling_factor = 2.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 64, "in_features": 2048, "out_features": 1024},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 509, "scaling_factor": -0.3},
    "single": {"batch_size": 1, "in_features": 2000, "out_features": 1000},
    "narrow": {"batch_size": 500, "in_features": 96, "out_features": 8, "scaling_factor": 0.25},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 19, "in_features": 1031, "out_features": 387, "scaling_factor": 1.7}}
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scaling_factor: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        return x * torch.sigmoid(x) * self.scaling_factor


def get_inputs() -> list[torch.Tensor]:
    return [3 * torch.randn(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, scaling_factor]
