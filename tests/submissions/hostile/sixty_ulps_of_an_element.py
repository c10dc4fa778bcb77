"""Is off by sixty ulps of its largest element, in that one only.

problem: powers.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * self.scale
        largest = out.abs().argmax()
        out.view(-1)[largest] *= 1 + 60 * torch.finfo(out.dtype).eps
        return out
