"""Launches a kernel that does nothing of use, and computes in torch by a name made up at run time.

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
        nothing(torch.empty(32, device=x.device))
        return getattr(torch, "soft" + "max")(x, dim=1)
