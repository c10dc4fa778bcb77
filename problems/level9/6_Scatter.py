"""Scatter with collisions: values go to the positions in indices, and of several for one position the last wins.

    output[j] = values[i] for the largest i with indices[i] = j;    output[j] = 0 where there is none

values is (num_values,), float32; indices is (num_values,), int64, every entry in [0, output_size), in random order;
output is (output_size,), float32; all are contiguous. The constructor takes output_size. num_values and output_size
vary between cases. There are no parameters.
Differs from kernrl: the last of several values wins, which kernrl leaves open; signed values, more of them.
"""

import torch
import torch.nn as nn

num_values = 2**25
output_size = 24_000_000

CASES: dict[str, dict] = {
    "cpu": {"num_values": 1_000_000, "output_size": 700_000},
    "odd": {"num_values": 200_003, "output_size": 100_003},
    "crowded": {"num_values": 500_000, "output_size": 1000},
}
TAGS: tuple[str, ...] = ("indexing",)


class Model(nn.Module):
    def __init__(self, output_size: int = 1000000):
        super().__init__()
        self.output_size = output_size

    def forward(self, values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        order = torch.arange(len(values), device=values.device)
        last = torch.full((self.output_size,), -1, device=values.device)
        last.scatter_reduce_(0, indices, order, "amax")
        return torch.where(last >= 0, values[last.clamp(min=0)], 0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(num_values), torch.randint(0, output_size, (num_values,))]


def get_init_inputs() -> list:
    return [output_size]
