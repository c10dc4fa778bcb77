"""Walks over each row in blocks of 128 and forgets what is left at the end.

problem: row_norms.py
device: any
rules: kernel
expect: correctness/values
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns - BLOCK + 1, BLOCK):
        value = tl.load(x + row * columns + start + tl.arange(0, BLOCK))
        total += value * value
    tl.store(out + row, tl.sqrt(tl.sum(total, axis=0)))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        norms[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out
