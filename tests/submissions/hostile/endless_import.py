"""Never finishes being imported.

problem: softmax.py
device: any
rules: open
expect: compile/timeout
"""

import time

import torch
import torch.nn as nn

while True:
    time.sleep(1)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
