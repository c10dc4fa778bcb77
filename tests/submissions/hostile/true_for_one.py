"""Returns True where the reference returns the number 1.

problem: positives.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        return x > 0, True
