"""Defines a model that cannot be called.

problem: softmax.py
device: any
rules: kernel
expect: format/no_forward
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def softmax(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
