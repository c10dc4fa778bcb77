"""The positive part and a copy of the input as two views of one buffer, whose rows take turns.

problem: residual.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        both = torch.stack((x, x), dim=1)
        both[:, 0].clamp_(min=0)
        return both.unbind(dim=1)
