"""One pass over memory; each thread loads four neighboring elements at once."""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def gelu(x, y, count, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    value = gl.load(x + at, mask=at < count, other=0.0)
    gl.store(y + at, value * 0.5 * (1.0 + gl.erf(value * 0.7071067811865476)), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = x.numel()
        gelu[(triton.cdiv(count, 2048),)](x, y, count, BLOCK=2048, num_warps=4)
        return y
