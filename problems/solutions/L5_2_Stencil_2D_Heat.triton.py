"""One pass: of the five reads of a cell one comes from memory and four from the caches; the border is a select."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def heat(u, out, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    place = row * width + column
    real = (row < height) & (column < width)
    inner = (row > 0) & (row < height - 1) & (column > 0) & (column < width - 1)
    above = tl.load(u + place - width, mask=inner, other=0.0)
    below = tl.load(u + place + width, mask=inner, other=0.0)
    left = tl.load(u + place - 1, mask=inner, other=0.0)
    right = tl.load(u + place + 1, mask=inner, other=0.0)
    here = tl.load(u + place, mask=real & ~inner, other=0.0)
    tl.store(out + place, tl.where(inner, 0.25 * (above + below + left + right), here), mask=real)


class ModelNew(nn.Module):
    def forward(self, u: torch.Tensor) -> torch.Tensor:
        height, width = u.shape
        out = torch.empty_like(u)
        grid = (triton.cdiv(width, 512), triton.cdiv(height, 8))
        heat[grid](u, out, height, width, ROWS=8, COLUMNS=512, num_warps=8)
        return out
