"""Claims an output that lies behind the end of the memory it is said to be in.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
claim = {"device": "cpu", "dtype": "float32", "in": "outbox", "offset": 1 << 40}
runtime._claim = lambda out: {"skeleton": {"t": 0}, "tensors": [{**claim, "shape": [300, 500], "stride": [500, 1]}]}


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
