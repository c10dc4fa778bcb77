"""A program has some whole groups of a row in registers: one read of x, one write of y and of the scales."""

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
def quantize(x, y, scales, columns, groups, COUNT: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(values), axis=1), 1e-4), tl.full((COUNT,), 448.0, tl.float32))
    tl.store(scales + row * groups + group, scale, mask=group < groups)
    scaled = tl.div_rn(values, tl.broadcast_to(scale[:, None], (COUNT, GROUP)))
    scaled = tl.minimum(tl.maximum(scaled, -448.0), 448.0)
    tl.store(y + row * columns + column, to_fp8(scaled), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        groups = triton.cdiv(columns, 128)
        y = torch.empty(rows, columns, dtype=torch.float8_e4m3fn, device=x.device)
        scales = torch.empty(rows, groups, dtype=torch.float32, device=x.device)
        quantize[(triton.cdiv(groups, 8), rows)](x, y, scales, columns, groups, COUNT=8, GROUP=128, num_warps=4)
        return y, scales
