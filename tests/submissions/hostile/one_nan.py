"""Returns the right answer with NaN in one place, where a mean of errors hides it.

problem: L1_23_Softmax
device: any
rules: open
expect: correctness/not_finite
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.softmax(x, dim=1)
        out[-1, -1] = float("nan")
        return out
