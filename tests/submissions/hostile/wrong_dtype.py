"""Returns the right values in float16.

problem: softmax.py
device: any
rules: open
expect: correctness/dtype
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1).half()
