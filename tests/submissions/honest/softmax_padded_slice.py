"""Softmax that comes back as a slice of a padded buffer, with bytes between its rows.

problem: softmax.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        padded = torch.empty(rows + 3, columns + 29, dtype=x.dtype, device=x.device)
        out = padded[2 : rows + 2, 16 : columns + 16]
        return out.copy_(torch.softmax(x, dim=1))
