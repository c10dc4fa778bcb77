"""Never returns from its first call.

problem: softmax.py
device: any
rules: open
expect: runtime/timeout
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            pass
