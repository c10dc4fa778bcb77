"""Embedding bag: sums of table rows over ragged bags of indices.

    y[b, :] = sum over i in offsets[b] .. offsets[b + 1] - 1 of weight[indices[i], :],    0 for an empty bag

indices is (num_indices,), int64, every entry in [0, num_rows), in random order; offsets is (num_bags + 1,), int64,
ascending, from 0 to num_indices, and some bags are empty; y is (num_bags, row_size), float32. The parameter
`table.weight` is (num_rows, row_size), float32. All are contiguous. The constructor takes num_rows, row_size. All
sizes vary between cases.
"""

import torch
import torch.nn as nn

num_rows = 500_000
row_size = 128
num_bags = 200_000
num_indices = 4_000_000

CASES: dict[str, dict] = {
    "cpu": {"num_rows": 20_000, "row_size": 64, "num_bags": 5000, "num_indices": 80_000},
    "odd": {"num_rows": 1021, "row_size": 33, "num_bags": 508, "num_indices": 3001},
    "single": {"num_rows": 5000, "row_size": 100, "num_bags": 1, "num_indices": 1000},
}
TAGS: tuple[str, ...] = ("indexing", "irregular")


class Model(nn.Module):
    def __init__(self, num_rows: int, row_size: int):
        super().__init__()
        self.table = nn.EmbeddingBag(num_rows, row_size, mode="sum", include_last_offset=True)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.table(indices, offsets)


def get_inputs() -> list[torch.Tensor]:
    cuts = torch.randint(0, num_indices + 1, (num_bags + 1,))
    cuts[0], cuts[-1] = 0, num_indices
    return [torch.randint(0, num_rows, (num_indices,)), cuts.sort().values]


def get_init_inputs() -> list:
    return [num_rows, row_size]
