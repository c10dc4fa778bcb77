"""Sends its answer byte by byte, so that something always just arrived.

problem: softmax.py
device: any
rules: open
expect: runtime/timeout
"""

import gc
import time

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for byte in (1 << 20).to_bytes(4, "big") + b" " * (1 << 20):
            runtime.channel.sock.sendall(bytes((byte,)))
            time.sleep(0.01)
        return x
