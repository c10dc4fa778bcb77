"""Returns a single value, which a comparison that broadcasts would spread over all rows.

problem: row_norms.py
device: any
rules: open
expect: correctness/shape
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.square().sum() / x.shape[0]).sqrt().reshape(1)
