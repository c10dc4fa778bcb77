"""A linear layer and a ReLU that overrides load_state_dict and keeps the weights in a layout of its own.

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
        self.packed = None

    def load_state_dict(self, state, *args, **keywords):
        self.packed = torch.cat([state["linear.weight"].T, state["linear.bias"][None]])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.addmm(self.packed[-1], x, self.packed[:-1]))
