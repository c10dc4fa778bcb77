"""Returns the first of two outputs only, which a comparison by pairs would not miss.

problem: extremes.py
device: any
rules: open
expect: correctness/arity
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.amax(dim=1),)
