"""A program has a part of one block, and so one scale; bytes are read and written once, side by side."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def dequantize(x, scale, y, rows, columns, blocks, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column_block, part = tl.program_id(0), tl.program_id(1)
    row = (part * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    column = column_block * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    factor = tl.load(scale + part * ROWS // BLOCK * blocks + column_block)
    values = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + column, (values * factor).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = torch.empty(rows, columns, dtype=torch.bfloat16, device=x.device)
        blocks = triton.cdiv(columns, 128)
        dequantize[(blocks, triton.cdiv(rows, 32))](
            x, scale, y, rows, columns, blocks, ROWS=32, BLOCK=128, num_warps=4
        )
        return y
