"""Computes in twice the precision that is asked for, which is right and no faster.

problem: row_norms.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.double().square().sum(dim=1).sqrt().float()
