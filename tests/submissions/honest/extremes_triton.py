"""Extremes in Triton: the largest element and where it is, from helpers of its own that compare pairs.

problem: extremes.py
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest_of(value, column, inside):
    most = tl.max(tl.where(inside, value, float("-inf")), axis=1)
    here = tl.where(inside & (value == most[:, None]), column[None, :], 2147483647)
    return most, tl.min(here, axis=1)


@triton.jit
def extremes(x, most_ptr, where_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    best = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    at = tl.zeros((ROWS,), dtype=tl.int32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        value = tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
        most, here = largest_of(value, column, inside)
        at = tl.where(most > best, here, at)
        best = tl.maximum(best, most)
    tl.store(most_ptr + row, best, mask=row < rows)
    tl.store(where_ptr + row, at.to(tl.int64), mask=row < rows)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        most = torch.empty(rows, device=x.device)
        where = torch.empty(rows, device=x.device, dtype=torch.long)
        height = 2 if x.is_cuda else 256
        extremes[(triton.cdiv(rows, height),)](x, most, where, rows, columns, ROWS=height, BLOCK=1024)
        return most, where
