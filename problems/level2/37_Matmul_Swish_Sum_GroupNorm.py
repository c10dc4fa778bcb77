"""A linear layer, Swish, a second bias, and normalisation of each row in groups of features.

    z = x W^T + c
    t = z / (1 + exp(-z)) + bias
    y[b, i] = (t[b, i] - mean[b, g]) / sqrt(var[b, g] + 1e-5) * scale[i] + shift[i]

where g is the group of feature i (num_groups groups of out_features / num_groups features in a row), and mean[b, g]
and var[b, g] are the mean and the biased variance of t over that group of row b. x is (batch_size, in_features), W
(`matmul.weight`) is (out_features, in_features); c (`matmul.bias`), bias (`bias`), scale (`group_norm.weight`) and
shift (`group_norm.bias`) are (out_features,); y is (batch_size, out_features). All are float32 and contiguous. The
constructor takes in_features, out_features, num_groups and bias_shape, the tuple (out_features,). All sizes vary
between cases; num_groups divides out_features.
Differs from KernelBench: inputs are signed and wider; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 8192
in_features = 1024
out_features = 4096
num_groups = 64
bias_shape = (out_features,)

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 256, "in_features": 512, "out_features": 1024, "num_groups": 32},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 315, "num_groups": 9},
    "single": {"batch_size": 1, "in_features": 600, "out_features": 2000, "num_groups": 4},
    "one_group": {"batch_size": 40, "in_features": 100, "out_features": 300, "num_groups": 1},
}
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, num_groups: int, bias_shape: tuple):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        x = torch.sigmoid(x) * x
        return self.group_norm(x + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, in_features)]


def get_init_inputs() -> list:
    return [in_features, out_features, num_groups, bias_shape]
