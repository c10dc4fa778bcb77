"""As many programs as keep the device busy, each with a block of running maxima; a last program takes theirs."""

import torch
import triton
import triton.language as tl
from torch import nn

PROGRAMS = 1056


@triton.jit
def largest(x, maxima, count, BLOCK: tl.constexpr):
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    while first < count:
        index = first + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.load(x + index, mask=index < count, other=-float("inf")))
        first += tl.num_programs(0) * BLOCK
    tl.store(maxima + tl.program_id(0), tl.max(most, axis=0))


class ModelNew(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        count = input.numel()
        programs = min(PROGRAMS, triton.cdiv(count, 16384))
        maxima = input.new_empty(programs)
        y = input.new_empty(())
        largest[(programs,)](input, maxima, count, BLOCK=16384, num_warps=16)
        largest[(1,)](maxima, y, programs, BLOCK=2048, num_warps=8)
        return y
