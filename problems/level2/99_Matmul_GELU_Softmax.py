"""A linear layer, exact GELU, and softmax along the rows of the result.

    z = x W^T + bias
    g = z / 2 * (1 + erf(z / sqrt(2)))
    y[b, i] = exp(g[b, i] - m[b]) / sum over j of exp(g[b, j] - m[b]),    m[b] = max over j of g[b, j]

x is (batch_size, in_features), W (`linear.weight`) is (out_features, in_features), bias (`linear.bias`) is
(out_features,), y is (batch_size, out_features), all float32 and contiguous. The constructor takes in_features and
out_features. g may be large, so the maximum must be subtracted. All three sizes vary between cases.
Differs from KernelBench: inputs are signed and wider, so that the rows of y are far from constant.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 1024
in_features = 8192
out_features = 8192

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 128, "in_features": 1024, "out_features": 2048},
    "odd": {"batch_size": 61, "in_features": 509, "out_features": 1021},
    "single": {"batch_size": 1, "in_features": 2048, "out_features": 2048},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 37, "in_features": 773, "out_features": 1307}}
BASELINE = "../baselines/matmul_gelu_softmax.py"
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(F.gelu(self.linear(x)), dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features]
