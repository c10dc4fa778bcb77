"""A linear layer and a ReLU that packs its weights once, at the first call.

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
        self.linear = nn.Linear(inputs, outputs)
        self.packed = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is None:
            self.packed = self.linear.weight.detach().t().contiguous()
        return torch.relu(x @ self.packed + self.linear.bias)
