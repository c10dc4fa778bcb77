"""Fills all the memory that it shares with the judge with NaN, which compares as neither larger nor smaller.

problem: row_norms.py
device: any
rules: open
expect: correctness/inputs_changed
"""

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
        for region in runtime.regions.values():
            region.bytes.fill_(0xFF)
        return x.new_full((x.shape[0],), float("nan"))
