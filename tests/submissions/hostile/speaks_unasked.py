"""Sends the judge an answer that it was not asked for.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
        runtime.channel.send({"claims": [], "speedup": 1000.0, "category": "correct"})
        return torch.softmax(x, dim=1)
