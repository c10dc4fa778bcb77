"""Overwrites its input, so that a reference which ran later would agree.

problem: softmax.py
device: any
rules: open
expect: correctness/inputs_changed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.zero_()
        return torch.full_like(x, 1 / x.shape[1])
