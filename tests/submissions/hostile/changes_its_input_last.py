"""Changes one element of its input by one bit, where no tolerance would ever notice.

problem: row_norms.py
device: any
rules: open
expect: correctness/inputs_changed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x.square().sum(dim=1).sqrt()
        x.view(torch.int32)[-1, -1] ^= 1
        return out
