"""Histogram of 8-bit values.

    histogram[v] = number of n with min(max(data[n], 0), 255) = v,    v in 0..255

data is (num_pixels,), int64, contiguous; histogram is (256,), int64. Values outside of 0..255, of which there are a
few, count in the nearest bin. Neighbouring values in data are similar, as the pixels of an image are: runs
of 4096 vary around a level of their own, so that many neighbours fall into the same few bins. num_pixels varies
between cases. There are no parameters.
Differs from kernrl: these values, because a histogram of uniform ones is nearly constant; more of them; exact counts.
"""

import torch
import torch.nn as nn

num_pixels = 2**26

CASES: dict[str, dict] = {
    "cpu": {"num_pixels": 3_000_000},
    "odd": {"num_pixels": 1_000_003},
    "small": {"num_pixels": 500},
}
TAGS: tuple[str, ...] = ("histogram", "image", "atomics")


class Model(nn.Module):
    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return torch.bincount(data.clamp(0, 255), minlength=256)


def get_inputs() -> list[torch.Tensor]:
    levels = 120 + 40 * torch.randn(num_pixels // 4096 + 1).repeat_interleave(4096)[:num_pixels]
    return [(levels + 8 * torch.randn(num_pixels)).round().long()]


def get_init_inputs() -> list:
    return []
