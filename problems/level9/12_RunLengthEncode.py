"""Run-length encoding of a vector of integers. Three outputs.

A run is a longest stretch of equal neighbours. With count the number of runs, numbered from the left:

    values[r] = the element that run r repeats,    lengths[r] = how often,    both 0 for r >= count

input, values and lengths are (array_size,), int32, contiguous; count is an int64 scalar, of shape (). `forward`
returns the tuple (values, lengths, count). Elements lie in [-1000, 1000). Runs are 4 long on average; 1.25 in the case
`odd`, which leaves little padding, and 30 in the case `long`. array_size varies between cases. There are no parameters.
"""

import torch
import torch.nn as nn

array_size = 2**27
run_length = 4

CASES: dict[str, dict] = {
    "cpu": {"array_size": 2_000_000},
    "odd": {"array_size": 1_000_003, "run_length": 1.25},
    "long": {"array_size": 500_000, "run_length": 30},
}
TAGS: tuple[str, ...] = ("scan", "irregular")


class Model(nn.Module):
    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        begins = torch.ones_like(input, dtype=torch.bool)
        begins[1:] = input[1:] != input[:-1]
        run = torch.cumsum(begins, 0) - 1
        values = torch.zeros_like(input).scatter_(0, run, input)  # equal elements meet, so any of them may win
        lengths = torch.zeros_like(input).scatter_add_(0, run, torch.ones_like(input))
        return values, lengths, begins.sum()


def get_inputs() -> list[torch.Tensor]:
    run = torch.cumsum(torch.rand(array_size) < 1 / run_length, 0)
    return [torch.randint(-1000, 1000, (array_size + 1,), dtype=torch.int32)[run]]


def get_init_inputs() -> list:
    return []
