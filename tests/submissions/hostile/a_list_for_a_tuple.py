"""Returns the right tensors in a list where a tuple is asked for.

problem: extremes.py
device: any
rules: open
expect: correctness/type
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.amax(dim=1), x.argmax(dim=1)]
