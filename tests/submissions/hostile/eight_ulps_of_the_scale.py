"""Is off by eight ulps of the output's scale, in its smallest element only.

problem: double_bfloat16.py
device: any
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = 2 * x
        scale = out.float().std()
        smallest = out.abs().argmin()
        out.view(-1)[smallest] += 8 * torch.finfo(out.dtype).eps * scale
        return out
