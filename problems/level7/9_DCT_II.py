"""Orthonormal discrete cosine transform (DCT-II) of every row.

    y[b, k] = s[k] * sum over j of x[b, j] * cos(pi / length * (j + 1/2) * k)
    s[0] = sqrt(1 / length),    s[k] = sqrt(2 / length) for k > 0

x and y are (batch_size, length), float32, contiguous. The transform is orthogonal: it keeps the norm of every row. The
reference multiplies by a matrix, which a fast transform (through an FFT of half the length) avoids.
batch_size and length vary between cases; length may be any number. There are no parameters.
"""

import math

import torch
import torch.nn as nn

batch_size = 32768
length = 1024

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1500, "length": 256},
    "odd": {"batch_size": 255, "length": 189},
    "single": {"batch_size": 1, "length": 2048},
}
TAGS: tuple[str, ...] = ("transform", "signal")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ cosines(x.shape[1], x.device).to(x.dtype).T


def cosines(length: int, device: torch.device) -> torch.Tensor:
    """The matrix of the transform, one frequency a row, from float64 arithmetic: the angles are large."""
    index = torch.arange(length, dtype=torch.float64, device=device)
    matrix = math.sqrt(2 / length) * torch.cos(math.pi / length * torch.outer(index, index + 0.5))
    matrix[0] /= math.sqrt(2)
    return matrix


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, length)]


def get_init_inputs() -> list:
    return []
