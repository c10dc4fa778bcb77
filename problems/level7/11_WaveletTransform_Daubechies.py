"""Discrete wavelet transform of every row over several levels, with Daubechies' filters of four taps.

    a_0 = x;  for l = 1 .. levels:    a_l[b, k] = sum over j of filters[0, 0, j] * a_{l-1}[b, 2 k - 2 + j]
                                      d_l[b, k] = sum over j of filters[1, 0, j] * a_{l-1}[b, 2 k - 2 + j]
    y[b] = a_levels[b], d_levels[b], ..., d_2[b], d_1[b] one after the other

j = 0 .. 3; a_{l-1} is 0 outside of its range. From n_{l-1} values come n_l = (n_{l-1} + 3) // 2 of each kind, k = 0 ..
n_l - 1. x is (batch_size, length), y is (batch_size, n_levels + n_levels + ... + n_2 + n_1), both float32 and
contiguous. The buffer `filters` is (2, 1, 4), float32: row 0 is the low pass h = (1 + r, 3 + r, 3 - r, 1 - r) /
(4 sqrt(2)) with r = sqrt(3), row 1 the high pass (h[3], -h[2], h[1], -h[0]). The transform is orthogonal: it keeps the
norm of every row. The constructor takes levels. batch_size, length and levels vary between cases; length may be any
number.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2048
length = 32768
levels = 6

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 60, "length": 8192},
    "odd": {"batch_size": 31, "length": 3001, "levels": 4},
    "single": {"batch_size": 1, "length": 100_000, "levels": 9},
}
TAGS: tuple[str, ...] = ("transform", "signal")


class Model(nn.Module):
    def __init__(self, levels: int):
        super().__init__()
        self.levels = levels
        root = math.sqrt(3)
        low = torch.tensor([1 + root, 3 + root, 3 - root, 1 - root]) / (4 * math.sqrt(2))
        high = low.flip(0) * torch.tensor([1.0, -1.0, 1.0, -1.0])
        self.register_buffer("filters", torch.stack([low, high])[:, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        approximation, details = x, []
        for _ in range(self.levels):
            padded = F.pad(approximation, (2, 3))
            approximation, detail = F.conv1d(padded[:, None], self.filters, stride=2).unbind(1)
            details.append(detail)
        return torch.cat([approximation, *reversed(details)], dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, length)]


def get_init_inputs() -> list:
    return [levels]
