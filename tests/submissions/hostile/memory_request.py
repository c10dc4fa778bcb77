"""Asks for more memory than there is.

problem: softmax.py
device: any
rules: open
expect: runtime/out_of_memory
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return bytearray(1 << 50)
