"""Returns the right values with a leading dimension of one, which broadcasting would hide.

problem: softmax.py
device: any
rules: open
expect: correctness/shape
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)[None]
