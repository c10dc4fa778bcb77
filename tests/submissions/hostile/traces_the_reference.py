"""Has torch trace a copy of the reference and replays the graph, in place of a kernel.

problem: linear.py
device: any
rules: open
expect: no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.traced = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.traced is None:
            self.traced = torch.jit.trace(nn.Sequential(self.linear, nn.ReLU()), x, check_trace=False)
        return self.traced(x)
