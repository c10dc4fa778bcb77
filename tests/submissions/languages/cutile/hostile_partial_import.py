"""Imports cuTile, calls something of it, and launches no kernel; torch computes, under rules that let it.

problem: softmax.py
device: cuda
rules: partial
expect: rules/no_kernel
"""

import cuda.tile as ct
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ct.cdiv(x.numel(), 2)
        return torch.softmax(x, dim=1)
