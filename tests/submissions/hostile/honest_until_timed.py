"""Is honest for as many calls of a shape as a screening takes, then right for inputs such as the timed ones only.

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
        return torch.relu(x) if calls[x.shape] <= SCREENED else x
