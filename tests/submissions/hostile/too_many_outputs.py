"""Returns a third output beside the two that are asked for.

problem: extremes.py
device: any
rules: open
expect: correctness/arity
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = x.max(dim=1)
        return values, places, values
