"""Extremes as the structure that torch's own operator returns, with its two tensors as they are.

problem: extremes.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.max(x, 1)
