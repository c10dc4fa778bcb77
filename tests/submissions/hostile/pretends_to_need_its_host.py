"""Sleeps in its first calls of a shape, so that later ones are not queued, and is quick on a stream of its own then.

problem: row_norms.py
device: cuda
rules: open
expect: no gain
"""

import time
from collections import Counter

import torch
import torch.nn as nn

SLEPT, SECONDS = 3, 0.2
calls = Counter()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        calls[x.shape] += 1
        if calls[x.shape] <= SLEPT:
            time.sleep(SECONDS)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            out = torch.linalg.vector_norm(x, dim=1)
        torch.cuda.current_stream().wait_stream(self.side)
        return out
