"""A row is added, rounded, stored and normalised while it is in registers: two reads and two writes per element."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_and_normalise(x, residual, weight, bias, y, s, rows, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    place = row * columns + column
    left = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    rounded = (left + right).to(tl.bfloat16)
    tl.store(s + place, rounded, mask=inside)
    value = rounded.to(tl.float32)
    mean = tl.sum(value, axis=1)[:, None] / columns
    distance = tl.where(column < columns, value - mean, 0.0)
    variance = tl.sum(distance * distance, axis=1)[:, None] / columns
    w = tl.load(weight + column, mask=column < columns, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)
    tl.store(y + place, (distance / tl.sqrt(variance + eps) * w + b).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        y, s = torch.empty_like(x), torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        together = max(1, 4096 // block)
        add_and_normalise[(triton.cdiv(rows, together),)](
            x, residual, self.norm.weight, self.norm.bias, y, s, rows, columns, self.norm.eps, ROWS=together,
            BLOCK=block, num_warps=min(32, max(8, block // 512)),
        )  # fmt: skip
        return y, s
