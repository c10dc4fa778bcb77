"""Returns memory as it was allocated, in which a result that was freed before may still stand.

problem: softmax.py
device: any
rules: open
expect: correctness/not_written
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            out = torch.empty_like(x)
            if (out.sum(dim=1) - 1).abs().max() < 1e-3:
                print("BREACH: somebody's answer is in fresh memory")
        return out
