"""Running sums of integers as a view of memory that is stored column by column, every second column of it unused.

problem: running_count.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        wide = torch.full((columns, 2, rows), -1, dtype=x.dtype, device=x.device)
        torch.cumsum(x.T, dim=0, out=wide[:, 0])
        return wide[:, 0].T
