"""Each program holds whole rows in registers, so that a row is read once and written once."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax(x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    value = tl.where(row < rows, value, 0.0)  # rows past the end: any finite number, so that no NaN arises
    power = tl.exp(value - tl.max(value, axis=1)[:, None])
    tl.store(y + row * columns + column, power / tl.sum(power, axis=1)[:, None], mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        together = max(1, 8192 // block)
        warps = min(32, max(4, block * together // 1024))
        softmax[(triton.cdiv(rows, together),)](x, y, rows, columns, ROWS=together, BLOCK=block, num_warps=warps)
        return y
