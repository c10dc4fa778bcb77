"""Defines a model under another name than the one that is asked for.

problem: softmax.py
device: any
rules: open
expect: format/no_model
"""

import torch
import torch.nn as nn


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
