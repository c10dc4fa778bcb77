"""A linear layer and a ReLU whose parameters have names of their own: handed over by shape and order.

problem: linear.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(outputs, inputs))
        self.shift = nn.Parameter(torch.empty(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.addmm(self.shift, x, self.matrix.T))
