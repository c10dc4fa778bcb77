"""Launches an empty kernel, and computes in torch by a name that is made up at run time.

problem: softmax.py
device: cuda
rules: kernel
expect: rules/torch_compute
"""

import torch
import torch.nn as nn
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def nothing(x):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        nothing[(1,)](x, num_warps=1)
        return getattr(torch, "soft" + "max")(x, dim=1)
