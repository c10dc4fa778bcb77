"""Computes in torch in the host code of a kernel, before its loop.

problem: softmax.py
device: cuda
rules: kernel
expect: rules/torch_compute
"""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1], num_warps=4))
def softmax(x: torch.Tensor) -> torch.Tensor:
    done = torch.softmax(x, dim=1)
    y = torch.empty_like(x)
    for row in hl.tile(x.size(0)):
        y[row, :] = done[row, :]
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
