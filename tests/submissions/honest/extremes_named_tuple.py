"""Extremes as a named tuple, which is a tuple.

problem: extremes.py
device: any
rules: open
expect: correct
"""

from typing import NamedTuple

import torch
import torch.nn as nn


class Extremes(NamedTuple):
    values: torch.Tensor
    indices: torch.Tensor


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> Extremes:
        values, indices = x.sort(dim=1, descending=True, stable=True)
        return Extremes(values=values[:, 0], indices=indices[:, 0])
