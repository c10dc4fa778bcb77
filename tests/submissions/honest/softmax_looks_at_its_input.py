"""Softmax that reads the largest input on the host, to leave out the shift where nothing can overflow.

problem: softmax.py
device: cuda
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.abs().max().item() < 20:
            raised = x.exp()
            return raised / raised.sum(dim=1, keepdim=True)
        return torch.softmax(x, dim=1)
