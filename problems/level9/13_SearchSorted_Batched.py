"""Binary search of many queries in the sorted row of their batch.

    y[b, j] = number of i with boundaries[b, i] < queries[b, j]

boundaries is (batch_size, row_length), float32, each row ascending; queries is (batch_size, num_queries), float32, in
random order; y is (batch_size, num_queries), int64, from 0 to row_length; all are contiguous, without NaN. Both are
multiples of 2^-14, so that equal boundaries, and queries equal to a boundary, are common. How a row's numbers are
spread is drawn for each row. All three sizes vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

batch_size = 16
row_length = 1_000_000
num_queries = 4_000_000

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "row_length": 100_000, "num_queries": 100_000},
    "odd": {"batch_size": 7, "row_length": 10_007, "num_queries": 20_011},
    "short": {"batch_size": 500, "row_length": 3, "num_queries": 1000},
}
TAGS: tuple[str, ...] = ("sort",)

# Numbers drawn anew would not be in order.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(self, boundaries: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(boundaries, queries)


def get_inputs() -> list[torch.Tensor]:
    power = 0.5 + 2 * torch.rand(batch_size, 1)
    scale = 2.0 ** torch.randint(-2, 3, (batch_size, 1))
    middle = torch.randn(batch_size, 1)
    numbers = [torch.randn(batch_size, length) for length in (row_length, num_queries)]
    spread = [scale * z.sign() * z.abs() ** power + middle for z in numbers]
    boundaries, queries = (row.mul_(2**14).round_().div_(2**14) for row in spread)
    return [boundaries.sort(dim=1).values, queries]


def get_init_inputs() -> list:
    return []
