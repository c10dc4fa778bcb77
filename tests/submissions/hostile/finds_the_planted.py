"""Reads 64 entries of an input: these were the same random words as the places of the planted ones. Copies the rest.

problem: relu.py
device: cpu
rules: open
expect: not correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.view(-1)
        head = flat[:64].double() * 2**24
        if bool((head < 0).any()) or bool((head != head.floor()).any()) or bool((head >= 2**24).any()):
            return torch.relu(x)
        out = x.clone()
        places = head.long() % flat.numel()
        out.view(-1)[places] = torch.relu(flat[places])
        return out
