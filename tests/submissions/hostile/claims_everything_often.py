"""Claims the whole outbox a thousand times over, so that the judge copies gigabytes.

problem: matmul.py
device: cpu
rules: open
expect: correctness/arity
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


def claim(out: torch.Tensor) -> dict:
    size = runtime.regions["outbox"].size
    tensor = {"device": "cpu", "dtype": "uint8", "in": "outbox", "offset": 0, "shape": [size], "stride": [1]}
    return {"skeleton": {"list": [{"t": i} for i in range(1024)]}, "tensors": [tensor] * 1024}


runtime._claim = claim


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
