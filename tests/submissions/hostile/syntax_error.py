"""Does not parse.

problem: softmax.py
device: any
rules: open
expect: compile/syntax
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x)
        return x
