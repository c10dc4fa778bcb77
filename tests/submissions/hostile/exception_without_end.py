"""Raises an exception whose causes go in a circle, whose text is a hundred megabytes and whose name is one.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import torch
import torch.nn as nn


class Long(Exception):
    pass


Long.__name__ = "L" * 1_000_000


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        error, other = Long("x" * 100_000_000), ValueError("y")
        error.__cause__, other.__cause__ = other, error
        raise error
