"""ReLU in Triton with block sizes and warps found by triton.autotune at the first call of each size.

problem: relu.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (1024, 4096) for warps in (4, 8)]


@triton.autotune(configs=CONFIGS, key=["count"])
@triton.jit
def relu(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    tl.store(y + place, tl.maximum(tl.load(x + place, mask=inside), 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        count = x.numel()
        relu[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](x, y, count)
        return y
