"""Computes on a stream of its own and returns before that has finished.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/values or no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            return torch.softmax(x, dim=1)
