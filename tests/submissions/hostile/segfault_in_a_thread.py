"""Reads from address zero in a thread, a moment after a call that was right.

problem: softmax.py
device: any
rules: open
expect: runtime/signal
"""

import ctypes
import threading
import time

import torch
import torch.nn as nn


def crash() -> None:
    time.sleep(0.01)
    ctypes.string_at(0)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        threading.Thread(target=crash, daemon=True).start()
        return torch.softmax(x, dim=1)
