"""Leaves a dispatch mode switched on for good, which sees every operator that the runtime calls after the model.

problem: softmax.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn
from torch.utils._python_dispatch import TorchDispatchMode

seen = []


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(str(function))
        return function(*args, **(kwargs or {}))


mode = Watch()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not seen:
            mode.__enter__()
        return torch.softmax(x, dim=1)
