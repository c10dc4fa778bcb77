"""Is honest for as many calls of a shape as a screening takes, then right only for inputs about as large as timed ones.

problem: relu.py
device: any
rules: open
expect: correctness/values on cpu, correctness/values or no gain on cuda
"""

from collections import Counter

import torch
import torch.nn as nn

SCREENED = 5
calls = Counter()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        calls[x.shape] += 1
        y = torch.relu(x)
        if calls[x.shape] > SCREENED:
            y[x.abs() > 4] = 1.0  # wrong on every other distribution
        return y
