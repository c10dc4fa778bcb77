"""Claims an output in memory of other processes, by names and handles that it makes up.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
calls = iter(("weights", "reference", "/dev/mem", "00" * 64, "ff" * 64, "../outbox"))
claim = {"device": "cpu", "dtype": "float32", "offset": 0, "shape": [300, 500], "stride": [500, 1]}
runtime._claim = lambda out: {"skeleton": {"t": 0}, "tensors": [{**claim, "in": next(calls)}]}


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
