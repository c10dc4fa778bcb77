"""Claims that both of its outputs lie in the same memory.

problem: extremes.py
device: any
rules: open
expect: correctness/not_written or correctness/values
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
first = None


def place(tensor: torch.Tensor, free: int) -> tuple[dict, int]:
    global first
    found = type(runtime)._place(runtime, tensor, free)
    first = found[0] if first is None or tensor.is_floating_point() else first
    return {**found[0], "in": first["in"], "offset": first["offset"]}, found[1]


runtime._place = place


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.amax(dim=1), x.argmax(dim=1)
