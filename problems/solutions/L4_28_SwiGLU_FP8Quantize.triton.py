"""Activation, largest value and rounding of some groups in registers: gate and up are read once, y is written once."""

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
def activate(x, y, scales, size, groups, COUNT: tl.constexpr, GROUP: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < size
    gate = tl.load(x + row * 2 * size + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + (row * 2 + 1) * size + column, mask=inside, other=0.0).to(tl.float32)
    values = gate / (1.0 + tl.exp(-gate)) * up
    scale = tl.maximum(tl.max(tl.abs(values), axis=1), 1e-4) / 448.0
    tl.store(scales + row * groups + group, scale, mask=group < groups)
    scaled = tl.minimum(tl.maximum(values / scale[:, None], -448.0), 448.0)
    tl.store(y + row * size + column, to_fp8(scaled), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, size = x.shape[0], x.shape[1] // 2
        groups = triton.cdiv(size, 128)
        y = torch.empty(rows, size, dtype=torch.float8_e4m3fn, device=x.device)
        scales = torch.empty(rows, groups, dtype=torch.float32, device=x.device)
        activate[(triton.cdiv(groups, 8), rows)](x, y, scales, size, groups, COUNT=8, GROUP=128, num_warps=4)
        return y, scales
