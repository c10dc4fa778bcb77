"""Raises an error whose message holds half a character, as names of files that are no UTF-8 do.

problem: softmax.py
device: any
rules: open
expect: runtime/exception
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("cannot open " + b"weights-\xff.bin".decode(errors="surrogateescape"))
