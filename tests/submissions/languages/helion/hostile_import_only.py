"""Imports Helion and computes in torch.

problem: softmax.py
device: cuda
rules: kernel
expect: rules/torch_compute
"""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[32], num_warps=1))
def nothing(x: torch.Tensor) -> torch.Tensor:
    for tile in hl.tile(x.size(0)):
        x[tile] = 0.0
    return x


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
