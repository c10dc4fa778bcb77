"""Fills the machine's memory.

problem: softmax.py
device: cpu
rules: open
expect: runtime/killed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hoard = []
        while True:
            hoard.append(torch.ones(1 << 26))
