"""Softmax in Gluon: one program holds a row in registers.

problem: L1_23_Softmax
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
def softmax(x, y, columns, BLOCK: gl.constexpr, WARPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [WARPS], [0])
    at = gl.arange(0, BLOCK, layout=layout)
    start = gl.program_id(0).to(gl.int64) * columns
    value = gl.load(x + start + at, mask=at < columns, other=-float("inf"))
    power = gl.exp(value - gl.max(value, 0))
    gl.store(y + start + at, power / gl.sum(power, 0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        block = triton.next_power_of_2(columns)
        warps = min(16, max(1, block // 512))
        softmax[(rows,)](x, y, columns, BLOCK=block, WARPS=warps, num_warps=warps)
        return y
