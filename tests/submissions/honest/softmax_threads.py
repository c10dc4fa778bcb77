"""Softmax by a pool of Python threads that has finished when the call returns.

problem: softmax.py
device: cpu
rules: open
expect: correct
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn

pool = ThreadPoolExecutor(2)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        halves = zip(x.chunk(2), out.chunk(2))
        list(pool.map(lambda pair: pair[1].copy_(torch.softmax(pair[0], dim=1)), halves))
        return out
