"""Stops every clock in Python, and those of CUDA, while it computes.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import time

import torch
import torch.nn as nn

for name in ("time", "perf_counter", "monotonic", "process_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, f"{name}_ns", lambda: 0)
torch.cuda.Event.elapsed_time = lambda self, end: 0.001


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
