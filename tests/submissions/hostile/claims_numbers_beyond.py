"""Claims sizes and steps whose product no machine word holds, so that an end comes out before its start.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
claim = {
    "device": "cpu",
    "dtype": "float32",
    "in": "outbox",
    "offset": 0,
    "shape": [1 << 61, 500],
    "stride": [1 << 61, 1],
}
runtime._claim = lambda out: {"skeleton": {"t": 0}, "tensors": [claim]}


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
