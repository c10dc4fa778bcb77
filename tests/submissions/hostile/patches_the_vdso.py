"""Overwrites the kernel's clock code that is mapped into its process, the way a native hook would.

problem: matmul.py
device: cpu
rules: open
expect: correct
"""

import ctypes
import os

import torch
import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)
with open("/proc/self/maps") as maps:
    line = next(each for each in maps if "[vdso]" in each)
start, end = (int(part, 16) for part in line.split()[0].split("-"))
if os.fork() == 0:  # a child's copy is as good, and its crash does no harm
    if libc.mprotect(ctypes.c_void_p(start), end - start, 7) == 0:
        ctypes.memset(start + 0x800, 0xC3, 0x400)  # return at once
    os._exit(0)
os.wait()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
