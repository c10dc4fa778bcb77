"""Forgets that every tensor has a layout.

problem: softmax.py
device: cuda
rules: kernel
expect: compile/jit
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def softmax(x, y, columns, BLOCK: gl.constexpr):
    at = gl.arange(0, BLOCK)
    start = gl.program_id(0) * columns
    value = gl.load(x + start + at, mask=at < columns, other=-float("inf"))
    power = gl.exp(value - gl.max(value, 0))
    gl.store(y + start + at, power / gl.sum(power, 0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=4)
        return y
