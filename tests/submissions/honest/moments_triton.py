"""Moments in Triton by sums of values and of squares about each row's first element; returns a dict of slices.

problem: moments.py
device: any
rules: kernel
expect: correct
"""

from typing import Any

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def moments(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    shift = tl.load(x + row * columns, mask=row < rows, other=0.0)
    linear = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    square = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        value = tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0.0) - shift[:, None]
        value = tl.where(inside, value, 0.0)
        linear += value
        square += value * value
    mean = tl.sum(linear, axis=1) / columns
    variance = tl.sum(square, axis=1) / columns - mean * mean
    tl.store(out + row, mean + shift, mask=row < rows)
    tl.store(out + rows + row, variance, mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        rows, columns = x.shape
        out = torch.empty(2 * rows, device=x.device, dtype=x.dtype)
        height = 2 if x.is_cuda else 256
        moments[(triton.cdiv(rows, height),)](x, out, rows, columns, ROWS=height, BLOCK=512)
        return {"mean": out[:rows], "variance": out[rows:]}
