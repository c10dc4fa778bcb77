"""Imports TileLang, calls something of it, and launches no kernel; torch computes, under rules that let it.

problem: softmax.py
device: cuda
rules: partial
expect: rules/no_kernel
"""

import tilelang
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        tilelang.disable_cache()
        return torch.softmax(x, dim=1)
