"""Hides a copy of the reference in a string and executes it.

problem: matmul.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn

TEXT = """
class Model(nn.Module):
    def forward(self, A, B):
        return A @ B
"""
exec(TEXT)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.reference = globals()["Model"]()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return self.reference(A, B)
