"""Returns its tensors in a list, as C++ gives a vector, where the reference has a tuple.

problem: extremes.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.amax(dim=1), x.argmax(dim=1)]
