"""Largest element of a vector.

    y = max over i of input[i]

input is (array_size,), float32, contiguous, without NaN. y is a float32 scalar, of shape (). array_size varies between
cases. There are no parameters. Some inputs are negative throughout. Their largest element lies anywhere, but more
often near the end than near the start, and in one of four at the very end.
Differs from kernrl: these inputs and a longer vector. Among positive numbers a maximum that starts from 0 goes
unnoticed, and among evenly spread ones so does a part left out.
"""

import torch
import torch.nn as nn

array_size = 400_000_000

CASES: dict[str, dict] = {
    "cpu": {"array_size": 7_000_000},
    "odd": {"array_size": 1_000_003},
    "small": {"array_size": 37},
}
TAGS: tuple[str, ...] = ("reduction",)


class Model(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input.max()


def get_inputs() -> list[torch.Tensor]:
    data = torch.randn(array_size).sub_(8)
    anywhere = ((1 - torch.rand((), dtype=torch.float64) ** 4) * (array_size - 1)).long()
    data[torch.where(torch.rand(()) < 0.25, array_size - 1, anywhere)] = torch.rand(()) - 1
    return [data]


def get_init_inputs() -> list:
    return []
