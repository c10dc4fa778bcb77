"""Returns zeros, which a lax absolute tolerance takes for the softmax of a long row.

problem: L1_23_Softmax
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
