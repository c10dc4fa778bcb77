"""Raises an exception that ends the process when somebody asks for its text.

problem: softmax.py
device: any
rules: open
expect: runtime/exit
"""

import torch
import torch.nn as nn


class Trap(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __format__ = __str__


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise Trap("correct")
