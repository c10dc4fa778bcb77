"""Each element from its neighbors, which are read through the cache, with masks at the edges."""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[4, 256], num_warps=8))
def leapfrog(now: torch.Tensor, before: torch.Tensor, coeff: float) -> torch.Tensor:
    height, width = now.size()
    out = torch.empty_like(now)
    for row, column in hl.tile([height, width]):
        i = row.index
        j = column.index
        inner = ((i > 0) & (i < height - 1))[:, None] & ((j > 0) & (j < width - 1))[None, :]
        up = hl.load(now, [i - 1, j], extra_mask=inner)
        down = hl.load(now, [i + 1, j], extra_mask=inner)
        left = hl.load(now, [i, j - 1], extra_mask=inner)
        right = hl.load(now, [i, j + 1], extra_mask=inner)
        here = now[row, column]
        new = 2.0 * here - before[row, column] + coeff * (up + down + left + right - 4.0 * here)
        out[row, column] = torch.where(inner, new, 0.0)
    return out


class ModelNew(nn.Module):
    def __init__(self, c: float = 1.0, dt: float = 0.01, dx: float = 0.1):
        super().__init__()
        self.coeff = (c * dt / dx) ** 2

    def forward(self, u_curr, u_prev):
        return leapfrog(u_curr, u_prev, self.coeff)
