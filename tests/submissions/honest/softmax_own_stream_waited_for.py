"""Softmax on a stream of its own that waits for no other, but is itself waited for: right where inputs are there.

problem: softmax.py
device: cuda
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            out = torch.softmax(x, dim=1)
        self.side.synchronize()
        return out
