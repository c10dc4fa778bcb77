"""Leaves with sys.exit(0) as if all were well.

problem: softmax.py
device: any
rules: open
expect: runtime/exit
"""

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(0)
