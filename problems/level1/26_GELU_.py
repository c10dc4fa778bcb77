"""GELU of every element, in its exact form.

    y = x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2)))

x and y are (batch_size, dim), float32, contiguous. The tanh approximation differs by up to 5e-4 and is not accepted.
batch_size and dim vary between cases. There are no parameters.
Differs from KernelBench: inputs are signed, so that both tails occur; dim is smaller.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4096
dim = 32768

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 256, "dim": 8000},
    "odd": {"batch_size": 127, "dim": 4099},
    "single": {"batch_size": 1, "dim": 131072},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 37, "dim": 3001}}
TAGS: tuple[str, ...] = ("elementwise", "activation")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, dim)]


def get_init_inputs() -> list:
    return []
