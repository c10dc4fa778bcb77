"""Computes on a stream of the highest priority, and fills one of the lowest with work for whoever comes next.

problem: matmul.py
device: cuda
rules: open
expect: correctness/early_done or correctness/values or no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.urgent, self.idle = torch.cuda.Stream(priority=-5), torch.cuda.Stream(priority=0)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.urgent.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.urgent):
            out = A @ B
        with torch.cuda.stream(self.idle):
            torch.cuda._sleep(2_000_000)
        return out
