"""Rotation that comes back as a lazily conjugated view: the memory holds the conjugate of what is meant.

problem: rotate.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        backwards = x.conj().resolve_conj() * torch.polar(torch.ones_like(angle), -angle)[:, None]
        return backwards.conj()
