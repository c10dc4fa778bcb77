"""Row means as an expanded view: one element of memory to a row, with stride 0 along it.

problem: row_means.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=1, keepdim=True).expand_as(x)
