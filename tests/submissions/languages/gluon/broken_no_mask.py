"""Reads and writes past the end of every row.

problem: softmax.py
device: cuda
rules: kernel
expect: correctness/values or correctness/inputs_changed or runtime/illegal_access or correctness/nondeterministic or correctness/not_finite
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def softmax(x, y, columns, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    start = gl.program_id(0) * columns
    at = gl.arange(0, BLOCK, layout=layout)
    power = gl.exp(gl.load(x + start + at))
    gl.store(y + start + at, power / gl.sum(power, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=4)
        return y
