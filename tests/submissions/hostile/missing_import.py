"""Imports a package that is not there.

problem: softmax.py
device: any
rules: open
expect: compile/import
"""

import no_such_package
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return no_such_package.softmax(x)
