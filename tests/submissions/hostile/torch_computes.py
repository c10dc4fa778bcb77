"""Lets torch do the computing under the rules that ask for a kernel.

problem: softmax.py
device: any
rules: kernel
expect: rules/torch_compute
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
