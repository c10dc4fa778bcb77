"""A row is added, normalised, scaled and rounded while it is in registers: every tensor is read or written once."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def to_fp8(values):
    """In float8_e4m3fn. They are rounded before: Triton's interpreter drops a carry into the exponent."""
    bits = values.to(tl.int32, bitcast=True)
    rounded = ((bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000).to(tl.float32, bitcast=True)
    values = tl.where(tl.abs(values) < 0.015625, (values + 24576.0) - 24576.0, rounded)
    return values.to(tl.float8e4nv)


@triton.jit
def normalise(x, residual, weight, y, scales, s, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    place = row * columns + column
    left = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    rounded = (left + right).to(tl.bfloat16)
    tl.store(s + place, rounded, mask=inside)
    value = rounded.to(tl.float32)
    factor = tl.rsqrt(1e-5 + tl.sum(value * value, axis=0) / columns)
    normal = value * factor * tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(normal), axis=0) / 448.0
    tl.store(scales + row, scale)
    scaled = tl.minimum(tl.maximum(normal / scale, -448.0), 448.0)
    tl.store(y + place, to_fp8(scaled), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden_size, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        y = torch.empty(rows, columns, dtype=torch.float8_e4m3fn, device=x.device)
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        s = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        normalise[(rows,)](
            x, residual, self.weight, y, scales, s, columns, BLOCK=block, num_warps=min(16, max(4, block // 512))
        )
        return y, scales, s
