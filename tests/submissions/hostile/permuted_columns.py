"""Returns the right values of each row in another order: every sum, mean and norm agrees.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1).roll(1, dims=1)
