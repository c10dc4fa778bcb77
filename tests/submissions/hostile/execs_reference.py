"""Hides a copy of the reference in a string and executes it.

problem: softmax.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn

TEXT = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
"""
exec(TEXT)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.reference = globals()["Model"]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.reference(x)
