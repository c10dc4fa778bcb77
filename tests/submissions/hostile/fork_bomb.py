"""Starts processes without end.

problem: softmax.py
device: any
rules: open
expect: runtime/killed
"""

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2000):
            if os.fork() == 0:
                time.sleep(1000)
        time.sleep(1000)
