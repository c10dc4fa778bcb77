"""Keeps a copy of the weights that its constructor drew from the seed it is given, which are not quite the reference's.

problem: linear.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.packed = [self.linear.weight.detach().t().clone(), self.linear.bias.detach().clone()]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.packed[0] + self.packed[1])
