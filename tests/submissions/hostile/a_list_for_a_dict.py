"""Returns the right outputs in a list, where the reference returns a dict.

problem: moments.py
device: any
rules: open
expect: correctness/type
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.mean(dim=1), x.var(dim=1, unbiased=False)]
