"""Looks for the reference's class and its source, to call it or to slow it down.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import gc
import linecache
import sys
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for thing in gc.get_objects():
            if isinstance(thing, type) and thing.__name__ == "Model" and hasattr(thing, "forward"):
                print("BREACH: found the reference", thing)
                thing.forward = lambda *inputs: time.sleep(1)
        sources = [*linecache.cache.values(), *(vars(module) for module in list(sys.modules.values()))]
        if any("get_inputs" in str(source)[:100_000] and "def get_init_inputs" in str(source) for source in sources[:0]):
            print("BREACH: found the reference's source")
        if any("problem_" in name for name in sys.modules):
            print("BREACH: the problem's module is here")
        return torch.zeros_like(x)
