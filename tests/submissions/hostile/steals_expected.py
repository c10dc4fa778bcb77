"""Looks for the expected output in the frames below it and among all objects that are alive.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import gc
import sys

import torch
import torch.nn as nn


def candidates():
    frame = sys._getframe()
    while frame is not None:
        yield from frame.f_locals.values()
        frame = frame.f_back
    yield from gc.get_objects()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for thing in candidates():
            right_kind = type(thing) is torch.Tensor and thing.shape == x.shape and thing.dtype == x.dtype
            if right_kind and (thing.sum(dim=1) - 1).abs().max() < 1e-3:
                print("BREACH: found something that looks like the expected output")
                return thing
        return torch.zeros_like(x)
