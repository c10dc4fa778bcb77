"""Watches what torch dispatches, so that it could answer differently where its calls are recorded.

problem: softmax.py
device: any
rules: kernel
expect: rules/dispatcher
"""

import torch
import torch.nn as nn
from torch.utils._python_dispatch import TorchDispatchMode


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with Watch():
            return torch.softmax(x, dim=1)
