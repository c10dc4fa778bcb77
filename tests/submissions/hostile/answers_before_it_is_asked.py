"""Sends its claim when it is told which inputs will come, so that the answer is there before the question.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol or correctness/shape or correctness/device
"""

import gc

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


def stage(*args, **keywords):
    told = type(runtime).stage(runtime, *args, **keywords)
    runtime.channel.send(told)
    claim = {"device": "cpu", "dtype": "float32", "shape": [300, 500], "stride": [500, 1], "in": "outbox", "offset": 0}
    return {"claims": [{"skeleton": {"t": 0}, "tensors": [claim]}]}


runtime.stage = stage


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
