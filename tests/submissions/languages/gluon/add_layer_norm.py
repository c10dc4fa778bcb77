"""Sum and layer norm of a row in Gluon, in one pass over registers.

problem: L3_109_ResidualAddLayerNorm
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add_layer_norm(x, residual, weight, bias, y, s, columns, eps, BLOCK: gl.constexpr, WARPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([8], [32], [WARPS], [0])
    at = gl.arange(0, BLOCK, layout=layout)
    start = gl.program_id(0).to(gl.int64) * columns
    inside = at < columns
    left = gl.load(x + start + at, mask=inside, other=0.0).to(gl.float32)
    right = gl.load(residual + start + at, mask=inside, other=0.0).to(gl.float32)
    rounded = (left + right).to(gl.bfloat16)
    gl.store(s + start + at, rounded, mask=inside)
    value = rounded.to(gl.float32)
    mean = gl.sum(value, 0) / columns
    distance = gl.where(inside, value - mean, 0.0)
    variance = gl.sum(distance * distance, 0) / columns
    w = gl.load(weight + at, mask=inside, other=0.0).to(gl.float32)
    b = gl.load(bias + at, mask=inside, other=0.0).to(gl.float32)
    gl.store(y + start + at, (distance / gl.sqrt(variance + eps) * w + b).to(gl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x, residual):
        rows, columns = x.shape
        y, s = torch.empty_like(x), torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        warps = min(16, max(1, block // 512))
        add_layer_norm[(rows,)](
            x, residual, self.norm.weight, self.norm.bias, y, s, columns, self.norm.eps, BLOCK=block, WARPS=warps,
            num_warps=warps,
        )  # fmt: skip
        return y, s
