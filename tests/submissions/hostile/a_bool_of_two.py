"""Returns a mask whose true elements are bytes of 2, which torch takes for true as well.

problem: positives.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return (2 * (x > 0).to(torch.uint8)).view(torch.bool), 1
