"""Ends its process with success when an object of its own is destroyed.

problem: softmax.py
device: any
rules: open
expect: runtime/exit
"""

import os

import torch
import torch.nn as nn


class Bomb:
    def __del__(self):
        os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bomb = Bomb()
        del bomb
        return torch.softmax(x, dim=1)
