"""Column sums in Triton: tiles of rows add into zeros by atomics, so that the order of the additions is open.

problem: column_sums.py
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_tiles(x, y, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    tile = tl.load(x + r[:, None] * columns + c[None, :], mask=inside, other=0.0)
    tl.atomic_add(y + c, tl.sum(tile, axis=0), mask=c < columns, sem="relaxed")


class ModelNew(nn.Module):
    ROWS, COLUMNS = 1024, 64

    def forward(self, x):
        y = torch.zeros(x.shape[1], dtype=torch.float32, device=x.device)
        grid = tuple(triton.cdiv(side, block) for side, block in zip(x.shape, (self.ROWS, self.COLUMNS)))
        add_tiles[grid](x, y, *x.shape, ROWS=self.ROWS, COLUMNS=self.COLUMNS)
        return y
