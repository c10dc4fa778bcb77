"""Launches a kernel that never ends.

problem: L1_23_Softmax
device: cuda
rules: open
expect: runtime/timeout
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            torch.cuda._sleep(1 << 40)
        return torch.softmax(x, dim=1)
