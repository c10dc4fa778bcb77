"""Computes the right softmax, in place of its input, and returns the input.

problem: softmax.py
device: any
rules: open
expect: correctness/inputs_changed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.copy_(torch.softmax(x, dim=1))
