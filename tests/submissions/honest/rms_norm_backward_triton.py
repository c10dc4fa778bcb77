"""RMS normalization with a backward pass of its own in Triton, which sums weight gradients by columns.

problem: rms_norm.py, backward
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalize(x, weight, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(value * value) / columns + 1e-6)
    tl.store(scales + row, scale)
    result = value * scale * tl.load(weight + at, mask=at < columns)
    tl.store(out + row * columns + at, result, mask=at < columns)


@triton.jit
def of_inputs(upstream, x, weight, scales, of_x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    scale = tl.load(scales + row)
    normal = tl.load(x + row * columns + at, mask=at < columns, other=0.0) * scale
    slope = tl.load(upstream + row * columns + at, mask=at < columns, other=0.0)
    slope *= tl.load(weight + at, mask=at < columns, other=0.0)
    result = scale * (slope - normal * (tl.sum(slope * normal) / columns))
    tl.store(of_x + row * columns + at, result, mask=at < columns)


@triton.jit
def of_weights(upstream, x, scales, of_weight, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (column < columns)
        scale = tl.load(scales + row, mask=row < rows, other=0.0)
        value = tl.load(x + row * columns + column, mask=inside, other=0.0) * scale
        total += value * tl.load(upstream + row * columns + column, mask=inside, other=0.0)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(of_weight + at, tl.sum(total, axis=0), mask=at < columns)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x = x.contiguous()
        rows, columns = x.shape
        out, scales = torch.empty_like(x), torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(columns)
        normalize[(rows,)](x, weight, out, scales, columns, BLOCK=block)
        ctx.save_for_backward(x, weight, scales)
        return out

    @staticmethod
    def backward(ctx, upstream):
        x, weight, scales = ctx.saved_tensors
        upstream = upstream.contiguous()
        rows, columns = x.shape
        of_x, of_weight = torch.empty_like(x), torch.empty_like(weight)
        block = triton.next_power_of_2(columns)
        of_inputs[(rows,)](upstream, x, weight, scales, of_x, columns, BLOCK=block)
        grid = (triton.cdiv(columns, 32),)
        of_weights[grid](upstream, x, scales, of_weight, rows, columns, ROWS=64, BLOCK=32)
        return of_x, of_weight


class ModelNew(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RMSNorm.apply(x, self.weight)
