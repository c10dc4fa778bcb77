"""Sum of all elements of a vector.

    y = input[0] + input[1] + ... + input[array_size - 1]

input is (array_size,), float32, contiguous. y is a float32 scalar, of shape (). array_size varies between cases. There
are no parameters. Some inputs are signed multiples of 2^-6, few enough that every partial sum is exact in float32 in
whatever order it is taken, so that one element lost or counted twice shows.
Differs from kernrl: these inputs and a longer vector. A float32 sum of positive numbers hides lost elements.
"""

import torch
import torch.nn as nn

array_size = 400_000_000

CASES: dict[str, dict] = {
    "cpu": {"array_size": 7_000_000},
    "odd": {"array_size": 1_000_003},
    "small": {"array_size": 37},
}
HIDDEN: dict[str, dict] = {"other": {"array_size": 2345679}}
TAGS: tuple[str, ...] = ("reduction",)

# Other signed numbers may add up to nearly nothing, and what is left then is the rounding of one order of additions.
DISTRIBUTIONS: tuple[str, ...] = ("own", "offset")


class Model(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input.sum()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(array_size).mul_(2**6).round_().div_(2**6)]


def get_init_inputs() -> list:
    return []
