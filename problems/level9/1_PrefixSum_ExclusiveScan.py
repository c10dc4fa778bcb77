"""Exclusive prefix sum of a vector.

    y[0] = 0,    y[i] = input[0] + input[1] + ... + input[i - 1]

input and y are (array_size,), float32, contiguous. array_size varies between cases. There are no parameters.
Some inputs are differences of neighbours in a sequence of multiples of 2^-14: then every prefix sum stays small and is
exact in float32 in whatever order it is summed, so that one element lost or counted twice shows.
Differs from kernrl: these inputs and a longer vector. A sum of positive numbers outgrows its elements.
"""

import torch
import torch.nn as nn

array_size = 2**27

CASES: dict[str, dict] = {
    "cpu": {"array_size": 3_000_000},
    "odd": {"array_size": 1_000_003},
    "small": {"array_size": 100},
}
HIDDEN: dict[str, dict] = {"other": {"array_size": 777777}}
TAGS: tuple[str, ...] = ("scan",)

# No "offset": its prefix sums reach 5e8, where float32 steps by 32 and no longer resolves the elements.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "wide")

# The error of a prefix sum depends on the order of the additions, and on a CPU the reference adds in float64: one
# running float32 sum is off by up to 2e-4 of the spread there. "own" is exact in any order, and stays sharp.
TOLERANCE: float = 32.0


class Model(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(input, dim=0) - input


def get_inputs() -> list[torch.Tensor]:
    return [torch.round(torch.randn(array_size + 1) * 2**14).diff() / 2**14]


def get_init_inputs() -> list:
    return []
