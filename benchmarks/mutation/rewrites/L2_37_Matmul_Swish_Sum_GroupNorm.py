import torch
import torch.nn as nn

DEPTH = 64


class Model(nn.Module):
    """The product in steps along its depth, then each group of a row by itself."""

    def __init__(self, in_features: int, out_features: int, num_groups: int, bias_shape: tuple):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.num_groups = num_groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.zeros(x.shape[0], self.bias.shape[0], dtype=x.dtype)
        for k in range(0, x.shape[1], DEPTH):
            z += x[:, k : k + DEPTH] @ self.matmul.weight[:, k : k + DEPTH].T
        z = z + self.matmul.bias
        t = z / (1.0 + torch.exp(-z)) + self.bias
        size = t.shape[1] // self.num_groups
        y = torch.empty_like(t)
        for group in range(0, self.num_groups):
            part = t[:, group * size : (group + 1) * size]
            mean = part.sum(dim=1, keepdim=True) / size
            variance = (part - mean).square().sum(dim=1, keepdim=True) / size
            y[:, group * size : (group + 1) * size] = (part - mean) * torch.rsqrt(variance + 1e-5)
        return y * self.group_norm.weight + self.group_norm.bias
