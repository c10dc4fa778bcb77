"""GELU by torch itself: the reference again, which the open rules admit.

problem: L1_26_GELU_
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)
