"""Softmax along the rows of a matrix.

    y[b, i] = exp(x[b, i] - m[b]) / sum over j of exp(x[b, j] - m[b]),    m[b] = max over j of x[b, j]

x and y are (batch_size, dim), float32, contiguous. Entries may be large, so subtract the row maximum before `exp`.
batch_size and dim vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed and wider, so that the rows of y are far from constant; dim is smaller.
"""

import torch
import torch.nn as nn

batch_size = 4096
dim = 32768

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2000, "dim": 1000},
    "odd": {"batch_size": 127, "dim": 1021},
    "single": {"batch_size": 1, "dim": 800},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 67, "dim": 2311}}
TAGS: tuple[str, ...] = ("reduction", "activation")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, dim)]


def get_init_inputs() -> list:
    return []
