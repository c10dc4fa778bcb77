"""Returns the negative of a product with torch's lazy negative bit set, and leaves the work to whoever reads it.

problem: matmul.py
device: any
rules: open
expect: correct on cpu, no gain on cuda
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch._neg_view(torch.mm(torch.neg(A), B))
