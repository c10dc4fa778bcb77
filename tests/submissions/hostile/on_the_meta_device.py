"""Returns a tensor that has a shape and no memory.

problem: softmax.py
device: any
rules: open
expect: correctness/device
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to("meta")
