"""Sums over the middle dimension in Helion.

problem: L1_47_Sum_reduction_over_a_dimension
device: cuda
rules: kernel
expect: correct
"""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1, 64, 64], num_warps=8))
def sum_middle(x: torch.Tensor) -> torch.Tensor:
    samples, rows, columns = x.size()
    y = torch.empty([samples, columns], dtype=x.dtype, device=x.device)
    for sample, column in hl.tile([samples, columns]):
        total = hl.zeros([sample, column], dtype=torch.float32)
        for row in hl.tile(rows):
            total = total + x[sample, row, column].sum(1)
        y[sample, column] = total
    return y


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x):
        return sum_middle(x).unsqueeze(1)
