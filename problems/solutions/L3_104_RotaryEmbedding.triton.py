"""One program per token: its angles are read once for all heads, each pair of features is read and written once."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rotate(
    x, y, cos, sin, positions, heads, size, half, HEADS: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, HALF)
    position = tl.load(positions + token)
    c = tl.load(cos + position * half + i, mask=i < half, other=0.0)[None, :]
    s = tl.load(sin + position * half + i, mask=i < half, other=0.0)[None, :]
    place = (token * heads + head) * size + i[None, :]
    inside = (head < heads) & (i < half)[None, :]
    first = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x + place + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, (first * c - second * s).to(tl.bfloat16), mask=inside)
    tl.store(y + place + half, (second * c + first * s).to(tl.bfloat16), mask=inside)
    if REST > 0:
        j = 2 * half + tl.arange(0, REST)[None, :]
        place = (token * heads + head) * size + j
        inside = (head < heads) & (j < size)
        tl.store(y + place, tl.load(x + place, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, rotary_dim: int, max_position: int):
        super().__init__()
        self.register_buffer("cos", torch.empty(max_position, rotary_dim // 2))
        self.register_buffer("sin", torch.empty(max_position, rotary_dim // 2))

    def turned(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        heads, size = x.shape[2:]
        half = self.cos.shape[1]
        left = size - 2 * half
        y = torch.empty_like(x)
        rotate[(positions.numel(),)](
            x, y, self.cos, self.sin, positions, heads, size, half, HEADS=triton.next_power_of_2(heads),
            HALF=triton.next_power_of_2(half), REST=triton.next_power_of_2(left) if left else 0, num_warps=4,
        )  # fmt: skip
        return y

    def forward(self, q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.turned(q, positions), self.turned(k, positions)
