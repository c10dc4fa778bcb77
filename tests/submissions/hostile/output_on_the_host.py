"""Returns its output in pinned memory of the host, while the copy is still on its way.

problem: softmax.py
device: cuda
rules: open
expect: correctness/device
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.empty(x.shape, pin_memory=True).copy_(torch.softmax(x, dim=1), non_blocking=True)
