"""A linear layer and a ReLU under torch.inference_mode, so that its output is an inference tensor.

problem: linear.py
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        with torch.inference_mode():
            self.scratch = torch.empty(0)
        self.linear = nn.Linear(inputs, outputs).requires_grad_(False).eval()

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu_()
