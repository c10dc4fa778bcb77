"""Ends its process with success before any model is asked for.

problem: softmax.py
device: any
rules: open
expect: compile/killed
"""

import os

import torch
import torch.nn as nn

os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
