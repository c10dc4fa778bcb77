import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def row_magnitude(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + column, mask=column < columns, other=0.0)
        largest = tl.maximum(largest, tl.abs(value))
    tl.store(y + row, tl.max(largest, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_magnitude[(rows,)](x, y, columns, BLOCK=2048, num_warps=8)
        return y
