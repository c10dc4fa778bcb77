"""Spells the function of torch that does the work in two pieces.

problem: softmax.py
device: any
rules: kernel
expect: rules/no_kernel
"""

import torch
import torch.nn as nn

name = "soft" + "max"


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(torch, name)(x, dim=1)
