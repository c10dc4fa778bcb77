"""Burns the cores from inside a process namespace of its own, where it hopes that no signal finds it.

problem: matmul.py
device: cpu
rules: open
expect: correct
"""

import ctypes
import os

import torch
import torch.nn as nn

libc = ctypes.CDLL(None)
NEWUSER, NEWPID = 0x10000000, 0x20000000

if os.fork() == 0:
    libc.unshare(NEWUSER | NEWPID)
    if os.fork() == 0:
        os.setsid()
        os.nice(5)
        while True:
            pass
    os._exit(0)
os.wait()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
