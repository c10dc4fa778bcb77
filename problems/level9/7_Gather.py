"""Gather: the elements of a vector at given indices.

    output[i] = source[indices[i]]

source is (source_size,), float32; indices is (num_gathers,), int64, every entry in [0, source_size), in random order;
output is (num_gathers,), float32; all are contiguous. source_size and num_gathers vary between cases. There are no
parameters.
Differs from kernrl: signed values and larger vectors; the source of the main case is larger than an L2 cache.
"""

import torch
import torch.nn as nn

source_size = 50_000_000
num_gathers = 2**27

CASES: dict[str, dict] = {
    "cpu": {"source_size": 1_000_000, "num_gathers": 2_000_000},
    "odd": {"source_size": 100_003, "num_gathers": 300_007},
    "crowded": {"source_size": 100, "num_gathers": 1_000_000},
}
TAGS: tuple[str, ...] = ("indexing",)


class Model(nn.Module):
    def forward(self, source: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return source[indices]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(source_size), torch.randint(0, source_size, (num_gathers,))]


def get_init_inputs() -> list:
    return []
