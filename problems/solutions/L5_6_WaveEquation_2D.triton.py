"""Both fields are read once and the new one written once; the four neighbours come from the caches."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def leapfrog(now, before, out, height, width, coeff, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    place = row * width + column
    inner = (row > 0) & (row < height - 1) & (column > 0) & (column < width - 1)
    here = tl.load(now + place, mask=inner, other=0.0)
    around = tl.load(now + place - width, mask=inner, other=0.0) + tl.load(now + place + width, mask=inner, other=0.0)
    around += tl.load(now + place - 1, mask=inner, other=0.0) + tl.load(now + place + 1, mask=inner, other=0.0)
    old = tl.load(before + place, mask=inner, other=0.0)
    new = 2.0 * here - old + coeff * (around - 4.0 * here)
    tl.store(out + place, tl.where(inner, new, 0.0), mask=(row < height) & (column < width))


class ModelNew(nn.Module):
    def __init__(self, c: float = 1.0, dt: float = 0.01, dx: float = 0.1):
        super().__init__()
        self.coeff = (c * dt / dx) ** 2

    def forward(self, u_curr: torch.Tensor, u_prev: torch.Tensor) -> torch.Tensor:
        height, width = u_curr.shape
        out = torch.empty_like(u_curr)
        columns = min(512, max(16, triton.next_power_of_2(width)))
        rows = 4096 // columns
        grid = (triton.cdiv(height, rows), triton.cdiv(width, columns))
        leapfrog[grid](u_curr, u_prev, out, height, width, self.coeff, ROWS=rows, COLUMNS=columns, num_warps=8)
        return out
