"""Answers with zeros in every other call, as a kernel with a race might.

problem: softmax.py
device: any
rules: open
expect: correctness/nondeterministic
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        right = torch.softmax(x, dim=1)
        return right if self.calls % 2 == 0 else torch.zeros_like(right)
