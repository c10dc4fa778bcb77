"""Waits inside vfork for a child, where SIGSTOP does not reach it, so that it can never be brought to a stand.

problem: softmax.py
device: cpu
rules: open
expect: runtime/killed
"""

import ctypes
import os
import time

import torch
import torch.nn as nn

libc = ctypes.PyDLL(None)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if os.fork() == 0:
            if libc.syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:  # clone(CLONE_VFORK)
                time.sleep(1000)
        time.sleep(0.05)
        return torch.softmax(x, dim=1)
