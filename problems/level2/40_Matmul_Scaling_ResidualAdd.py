"""A linear layer, and its output scaled and added to itself.

    z = x W^T + bias
    y = scaling_factor * z + z

x is (batch_size, in_features), W (`matmul.weight`) is (out_features, in_features), bias (`matmul.bias`) is
(out_features,), y is (batch_size, out_features), all float32 and contiguous. The constructor takes in_features,
out_features and scaling_factor. The three sizes and scaling_factor vary between cases.
Differs from KernelBench: inputs are signed; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 4096
in_features = 4096
out_features = 4096
scaling_factor = 0.5

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 256, "in_features": 768, "out_features": 1024},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 509, "scaling_factor": -0.3},
    "single": {"batch_size": 1, "in_features": 1500, "out_features": 1000, "scaling_factor": 4.0},
}
TAGS: tuple[str, ...] = ("matmul", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scaling_factor: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        return x * self.scaling_factor + x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, scaling_factor]
