"""Imports CuTe DSL, calls something of it, and launches no kernel; torch computes, under rules that let it.

problem: softmax.py
device: cuda
rules: partial
expect: rules/no_kernel
"""

import cutlass.cute as cute
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        cute.ceil_div(x.numel(), 2)
        return torch.softmax(x, dim=1)
