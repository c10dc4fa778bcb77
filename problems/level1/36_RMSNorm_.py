"""RMS normalisation over the second dimension (the features) of a batch of feature maps.

    y[b, c, h, w] = x[b, c, h, w] / sqrt(eps + 1 / num_features * sum over k of x[b, k, h, w]^2)

x and y are (batch_size, num_features, dim1, dim2), float32, contiguous: the features of one position lie dim1 * dim2
elements apart. The constructor takes num_features and eps (1e-5). There is no weight. All four sizes vary between
cases; eps does not.
Differs from KernelBench: inputs are signed; the batch is smaller.
"""

import torch
import torch.nn as nn

batch_size = 8
features = 64
dim1 = 512
dim2 = 512

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 10, "dim1": 80, "dim2": 80},
    "odd": {"batch_size": 3, "features": 61, "dim1": 53, "dim2": 47},
    "deep": {"batch_size": 1, "features": 1024, "dim1": 24, "dim2": 24},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 2, "features": 97, "dim1": 29, "dim2": 35}}
TAGS: tuple[str, ...] = ("normalization",)


class Model(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.sqrt(x.square().mean(dim=1, keepdim=True) + self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, features, dim1, dim2)]


def get_init_inputs() -> list:
    return [features]
