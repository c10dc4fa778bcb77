"""Every sample is read from memory once, and its neighbours in time from the cache; SiLU is taken before the store."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def causal_conv(
    x, state, weight, bias, y, rows, dim, length, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    real = row < rows
    channel = row % dim
    row = row.to(tl.int64)
    time = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((ROWS, BLOCK), tl.float32) + tl.load(bias + channel, mask=real, other=0.0)
    for j in tl.static_range(WIDTH):
        then = time + (j - (WIDTH - 1))
        value = tl.load(x + row * length + then, mask=real & (then >= 0) & (then < length), other=0.0)
        if tl.program_id(0) == 0:  # only the first block looks back beyond the samples
            value += tl.load(state + row * (WIDTH - 1) + then + (WIDTH - 1), mask=real & (then < 0), other=0.0)
        total += tl.load(weight + channel * WIDTH + j, mask=real, other=0.0) * value
    tl.store(y + row * length + time, total / (1.0 + tl.exp(-total)), mask=real & (time < length))


class ModelNew(nn.Module):
    def __init__(self, dim: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, width))
        self.bias = nn.Parameter(torch.empty(dim))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        batch, dim, length = x.shape
        y = torch.empty_like(x)
        block = min(2048, max(16, triton.next_power_of_2(length)))
        together = 4096 // block
        grid = (triton.cdiv(length, block), triton.cdiv(batch * dim, together))
        causal_conv[grid](
            x, state, self.weight, self.bias, y, batch * dim, dim, length, WIDTH=self.weight.shape[1], ROWS=together,
            BLOCK=block, num_warps=8,
        )  # fmt: skip
        return y
