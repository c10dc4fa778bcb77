"""Liger's fused addition and layer norm: one program per row, in Triton."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_norm(x, residual, weight, bias, y, s, size, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, COLUMNS)
    known = i < size
    at = row * size + i
    total = tl.load(x + at, mask=known, other=0.0).to(tl.float32)
    total += tl.load(residual + at, mask=known, other=0.0).to(tl.float32)
    kept = total.to(s.dtype.element_ty)
    tl.store(s + at, kept, mask=known)
    wide = kept.to(tl.float32)
    centred = tl.where(known, wide - tl.sum(wide, axis=0) / size, 0.0)
    factor = tl.rsqrt(tl.sum(centred * centred, axis=0) / size + 1e-5)
    w = tl.load(weight + i, mask=known, other=0.0).to(tl.float32)
    b = tl.load(bias + i, mask=known, other=0.0).to(tl.float32)
    tl.store(y + at, (centred * factor * w + b).to(y.dtype.element_ty), mask=known)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows, size = x.shape
        y, s = torch.empty_like(x), torch.empty_like(x)
        add_norm[(rows,)](
            x, residual, self.norm.weight, self.norm.bias, y, s, size,
            COLUMNS=triton.next_power_of_2(size), num_warps=16,
        )  # fmt: skip
        return y, s
