"""The k largest elements of each row, largest first, and their positions. Two outputs.

    values[b, j] = x[b, indices[b, j]],    values[b, 0] >= values[b, 1] >= ... >= every other element of the row;
    among equal elements the one further left comes first, and is taken first

x is (batch_size, row_length), float32; values is (batch_size, k), float32; indices is (batch_size, k), int64; all are
contiguous, and x has no NaN. `forward` returns the tuple (values, indices). The constructor takes k, which is at most
row_length and at most 64. All three numbers vary between cases. There are no parameters. Some inputs are multiples of
2^-8, so that equal elements are common; there is no negative zero among those. In most of their rows most of the k
largest stand together, or in every second place, or in every fourth, and so on: it is another stretch in each row.
"""

import torch
import torch.nn as nn

batch_size = 4096
row_length = 16384
k = 64

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 50, "row_length": 5000, "k": 32},
    "odd": {"batch_size": 33, "row_length": 1021, "k": 7},
    "single": {"batch_size": 1, "row_length": 100_000, "k": 50},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 21, "row_length": 2749, "k": 19}}
TAGS: tuple[str, ...] = ("sort",)


class Model(nn.Module):
    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.sort(x, dim=1, descending=True, stable=True)
        return values[:, : self.k].contiguous(), indices[:, : self.k].contiguous()


def get_inputs() -> list[torch.Tensor]:
    row_offset = torch.randint(-1024, 1025, (batch_size, 1))
    doublings = max(1, (row_length // (2 * k)).bit_length())
    stride = 2 ** torch.randint(0, doublings, (batch_size, 1))
    place = (torch.arange(row_length) + torch.randint(0, row_length, (batch_size, 1))) % row_length
    high = (place % stride == 0) & (place < 2 * k * stride) & (torch.rand(batch_size, 1) < 0.75)
    return [torch.randn(batch_size, row_length).mul_(2**8).round_().add_(row_offset + 3 * 2**8 * high).div_(2**8)]


def get_init_inputs() -> list:
    return [k]
