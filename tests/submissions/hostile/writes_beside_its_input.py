"""Computes the right answer and writes to the memory that lies behind its input.

problem: softmax.py
device: any
rules: open
expect: correctness/inputs_changed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.softmax(x, dim=1)
        behind = torch.empty(0, dtype=x.dtype, device=x.device)
        behind.set_(x.untyped_storage(), x.storage_offset() + x.numel(), (16,), (1,))
        behind.fill_(7)
        return out
