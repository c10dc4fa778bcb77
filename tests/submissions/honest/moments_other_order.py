"""Moments as a dict whose keys come in another order, which makes no difference between dicts.

problem: moments.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=1, correction=0)
        return dict(variance=variance, mean=mean)
