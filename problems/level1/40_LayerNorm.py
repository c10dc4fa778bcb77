"""Layer normalisation over all dimensions but the first, with a weight and a bias per element.

    y[b, i] = (x[b, i] - mean[b]) / sqrt(var[b] + 1e-5) * weight[i] + bias[i]

where i runs over the features * dim1 * dim2 elements of one sample, mean[b] is their mean and var[b] their biased
variance (the mean of the squared distances to mean[b]). x and y are (batch_size, features, dim1, dim2), `ln.weight`
and `ln.bias` are (features, dim1, dim2), all float32 and contiguous. The constructor takes normalized_shape, a tuple
(features, dim1, dim2). All four sizes vary between cases.
Differs from KernelBench: inputs are signed; the batch is twice as large, so that the main case takes long enough.
"""

import torch
import torch.nn as nn

batch_size = 32
features = 64
dim1 = 256
dim2 = 256

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 512, "features": 8, "dim1": 24, "dim2": 20},
    "odd": {"batch_size": 7, "features": 13, "dim1": 17, "dim2": 19},
    "few": {"batch_size": 5, "features": 8, "dim1": 8, "dim2": 8},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 11, "features": 6, "dim1": 31, "dim2": 23}}
TAGS: tuple[str, ...] = ("normalization",)


class Model(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, features, dim1, dim2)]


def get_init_inputs() -> list:
    return [(features, dim1, dim2)]
