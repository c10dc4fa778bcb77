"""Returns memory of the harness's own that nothing was written to.

problem: softmax.py
device: cpu
rules: open
expect: correctness/not_written
"""

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
        outbox = runtime.regions["outbox"].bytes
        return outbox[: x.nbytes].view(x.dtype).view_as(x)
