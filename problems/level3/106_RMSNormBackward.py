"""Gradients of RMS normalisation over rows, with respect to input and weight. Two outputs.

The forward pass is y[b, i] = x[b, i] * r[b] * weight[i] with r[b] = 1 / sqrt(1e-5 + mean over i of x[b, i]^2). With
n[b, i] = x[b, i] * r[b] and g[b, i] = dy[b, i] * weight[i]:

    dx[b, i] = r[b] * (g[b, i] - n[b, i] * mean over j of g[b, j] * n[b, j])
    dweight[i] = sum over b of dy[b, i] * n[b, i]

x, dy and dx are (num_rows, num_features); the parameter `weight` and dweight are (num_features,); all float32 and
contiguous. `forward` takes (x, dy) and returns (dx, dweight). The constructor takes num_features. Both sizes vary
between cases.
"""

import torch
import torch.nn as nn

num_rows = 16384
num_features = 4096

CASES: dict[str, dict] = {
    "cpu": {"num_rows": 1000, "num_features": 768},
    "odd": {"num_rows": 127, "num_features": 1021},
    "single": {"num_rows": 1, "num_features": 5000},
    "tall": {"num_rows": 5000, "num_features": 24},
}
HIDDEN: dict[str, dict] = {"other": {"num_rows": 211, "num_features": 1693}}
TAGS: tuple[str, ...] = ("normalization", "backward")


class Model(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))

    def forward(self, x: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        r = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-5)
        n, g = x * r, dy * self.weight
        dx = r * (g - n * (g * n).mean(dim=1, keepdim=True))
        return dx, (dy * n).sum(dim=0)


def get_inputs() -> list[torch.Tensor]:
    # dy leans towards x or away from it, so that the projection that is taken off is as large as what is left.
    x = torch.randn(num_rows, num_features)
    return [x, torch.randn(num_rows, num_features) + torch.randn(num_rows, 1) * x]


def get_init_inputs() -> list:
    return [num_features]
