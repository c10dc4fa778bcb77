"""Ascending sort of 32-bit integers.

    y is input in another order, y[i] <= y[i + 1]

input and y are (array_size,), int64, contiguous. Every value lies in [-2^31, 2^31), so that 32 bits of a key decide;
values are signed, spread evenly over that range, and may occur more than once. array_size varies between cases. There
are no parameters.
Differs from kernrl: keys of either sign and a longer vector.
"""

import torch
import torch.nn as nn

array_size = 2**25

CASES: dict[str, dict] = {
    "cpu": {"array_size": 1_000_000},
    "odd": {"array_size": 262_147},
    "small": {"array_size": 100},
}
TAGS: tuple[str, ...] = ("sort",)


class Model(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.sort(input).values


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(-(2**31), 2**31, (array_size,))]


def get_init_inputs() -> list:
    return []
