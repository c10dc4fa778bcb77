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
        lines = [line for entry in linecache.cache.values() if len(entry) > 2 for line in entry[2]]
        if any(line.startswith("def get_init_inputs") for line in lines):
            print("BREACH: found the reference's source")
        if any("problem_" in name for name in sys.modules):
            print("BREACH: the problem's module is here")
        return torch.zeros_like(x)
