"""Starts threads until it can start no more; a count of processes does not see them.

problem: softmax.py
device: cpu
rules: open
expect: runtime/killed
"""

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        threading.stack_size(32768)
        for _ in range(3000):
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        time.sleep(0.5)
        print("BREACH: runs 3000 threads")
        return torch.zeros_like(x)
