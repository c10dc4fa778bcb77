"""Launches a kernel that spins for milliseconds beside each of its calls, and has its process wait for the calls only.

problem: relu.py
device: cuda
rules: open
expect: no gain
"""

import gc

import torch
import torch.nn as nn

side = torch.cuda.Stream()
runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
runtime.synchronize = lambda: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.relu(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
        return out
