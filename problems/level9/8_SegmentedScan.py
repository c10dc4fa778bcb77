"""Exclusive prefix sums of a vector that begin anew at each head of a segment.

    y[i] = 0 where i = 0 or segment_heads[i],    y[i] = y[i - 1] + values[i - 1] elsewhere

values and y are (array_size,), float32; segment_heads is (array_size,), bool; all are contiguous. Heads are spread at
random, one in 1000 on average, so that segments differ in length; element 0 may be marked or not. array_size varies
between cases. There are no parameters. Some values are signed multiples of 2^-10, few enough that every prefix sum
is exact in float32 in whatever order it is summed.
Differs from kernrl: these values, heads by chance, and a longer vector.
"""

import torch
import torch.nn as nn

array_size = 2**25
segment_length = 1000

CASES: dict[str, dict] = {
    "cpu": {"array_size": 500_000},
    "odd": {"array_size": 100_003},
    "short": {"array_size": 200_000, "segment_length": 3},
}
TAGS: tuple[str, ...] = ("scan", "irregular")

# The error of a prefix sum depends on the order of the additions, and the reference adds pairwise: one running float32
# sum per segment would use up 0.8 of the budget of 4 million "offset" values. "own" is exact in any order.
TOLERANCE: float = 4.0


class Model(nn.Module):
    def forward(self, values: torch.Tensor, segment_heads: torch.Tensor) -> torch.Tensor:
        total, closed = values, segment_heads  # of the elements up to i that lie less than `reach` back
        reach = 1
        while reach < len(values):
            before = torch.where(closed[reach:], 0, total[:-reach])
            total = torch.cat([total[:reach], total[reach:] + before])
            closed = torch.cat([closed[:reach], closed[reach:] | closed[:-reach]])
            reach *= 2
        exclusive = torch.cat([total.new_zeros(1), total[:-1]])
        return torch.where(segment_heads, 0, exclusive)


def get_inputs() -> list[torch.Tensor]:
    values = torch.randn(array_size).mul_(2**10).round_().div_(2**10)
    return [values, torch.rand(array_size) < 1 / segment_length]


def get_init_inputs() -> list:
    return []
