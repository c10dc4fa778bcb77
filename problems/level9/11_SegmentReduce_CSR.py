"""Sum and maximum of each segment of a vector, the segments given by their offsets (as rows are in CSR). Two outputs.

    total[s] = sum over i in offsets[s] .. offsets[s + 1] - 1 of values[i]
    largest[s] = max over the same i of values[i];    both are 0 for an empty segment

values is (num_values,), float32; offsets is (num_segments + 1,), int64, ascending, from 0 to num_values; total and
largest are (num_segments,), float32; all are contiguous. `forward` returns the tuple (total, largest). Segments at the
front are short, many of them empty; those at the end have twice the average length, and single ones many times
that. num_values and num_segments vary between cases. There are no parameters. Some values are signed multiples
of 2^-10, few enough that sums are exact in float32 in whatever order they are taken.
"""

import torch
import torch.nn as nn

num_values = 2**27
num_segments = 2_000_000

CASES: dict[str, dict] = {
    "cpu": {"num_values": 2_000_000, "num_segments": 30_000},
    "odd": {"num_values": 300_007, "num_segments": 5000},
    "single": {"num_values": 100_000, "num_segments": 1},
}
HIDDEN: dict[str, dict] = {"other": {"num_values": 222227, "num_segments": 7919}}
TAGS: tuple[str, ...] = ("reduction", "irregular")


class Model(nn.Module):
    def forward(self, values: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.segment_reduce(values, "sum", offsets=offsets)
        largest = torch.segment_reduce(values, "max", offsets=offsets)
        return total, torch.where(offsets.diff() > 0, largest, 0)


def get_inputs() -> list[torch.Tensor]:
    values = torch.randn(num_values).mul_(2**10).round_().div_(2**10)
    cuts = (torch.rand(num_segments + 1, dtype=torch.float64).square_() * num_values).long()
    cuts[0], cuts[-1] = 0, num_values
    return [values, cuts.sort().values]


def get_init_inputs() -> list:
    return []
