"""Stops its own process with SIGSTOP, so that nothing ever ends.

problem: softmax.py
device: any
rules: open
expect: runtime/timeout
"""

import os
import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGSTOP)
        return torch.softmax(x, dim=1)
