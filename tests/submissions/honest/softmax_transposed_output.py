"""Softmax that comes back as a transposed view, so it is not contiguous.

problem: softmax.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.T.contiguous(), dim=0).T
