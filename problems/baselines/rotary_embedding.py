"""Liger's rotary embedding: one program per token, for all heads, in Triton."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rotate(
    x, y, positions, cos, sin, heads, size, rotary,
    HEADS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    half = rotary // 2
    place = tl.load(positions + token)
    h = tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, SIZE)[None, :]
    known = (h < heads) & (i < size)
    at = token * heads * size + h * size + i
    turned = i < rotary
    other = tl.where(i < half, i + half, i - half)
    angle = tl.where(i < half, i, i - half)
    a = tl.load(x + at, mask=known, other=0.0).to(tl.float32)
    b = tl.load(x + at - i + other, mask=known & turned, other=0.0).to(tl.float32)
    c = tl.load(cos + place * half + angle, mask=turned, other=1.0)
    s = tl.load(sin + place * half + angle, mask=turned, other=0.0)
    out = a * c + tl.where(i < half, -b, b) * s
    tl.store(y + at, out.to(y.dtype.element_ty), mask=known)


class ModelNew(nn.Module):
    def __init__(self, rotary_dim: int, max_position: int):
        super().__init__()
        self.rotary_dim = rotary_dim
        self.register_buffer("cos", torch.empty(max_position, rotary_dim // 2))
        self.register_buffer("sin", torch.empty(max_position, rotary_dim // 2))

    def turned(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        batch, tokens, heads, size = x.shape
        y = torch.empty_like(x)
        rotate[(batch * tokens,)](
            x, y, positions, self.cos, self.sin, heads, size, self.rotary_dim,
            HEADS=triton.next_power_of_2(heads), SIZE=triton.next_power_of_2(size), num_warps=4,
        )  # fmt: skip
        return y

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.turned(q, positions), self.turned(k, positions)
