"""Returns more tensors than an answer may describe.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (torch.softmax(x, dim=1),) * 1025
