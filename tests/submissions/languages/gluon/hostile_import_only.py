"""Imports Gluon and defines a kernel, and computes in torch.

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
        return torch.softmax(x, dim=1)
