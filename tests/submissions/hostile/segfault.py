"""Reads from address zero.

problem: softmax.py
device: any
rules: open
expect: runtime/signal
"""

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ctypes.string_at(0)
