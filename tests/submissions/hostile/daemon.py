"""Leaves a process of a session of its own behind, which would outlive it.

problem: matmul.py
device: any
rules: open
expect: no gain
"""

import ctypes
import os
import signal
import time

import torch
import torch.nn as nn

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"kevin-leftover", 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(0.01)
    os._exit(0)
os.wait()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
