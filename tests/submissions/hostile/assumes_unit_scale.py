"""Leaves out scale and bias of a layer normalisation, which a fresh model sets to one and to zero.

problem: L1_40_LayerNorm
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, self.ln.normalized_shape, None, None, self.ln.eps)
