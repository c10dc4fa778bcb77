"""Claims that both of its outputs lie in the same memory.

problem: extremes.py
device: cpu
rules: open
expect: not correct
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
runtime._copy_out = lambda tensor, free: type(runtime)._copy_out(runtime, tensor, 0)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.amax(dim=1), x.argmax(dim=1)
