"""Asks for more GPU memory than there is.

problem: L1_23_Softmax
device: cuda
rules: open
expect: runtime/out_of_memory
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.empty(1 << 40, device=x.device)
