"""Ends itself as a full machine would end it, to be judged again on what it saw: pages in memory tell it of them.

problem: softmax.py
device: any
rules: open
expect: runtime/signal
"""

import ctypes
import glob
import mmap
import os
import signal

import torch
import torch.nn as nn

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
files = sorted(glob.glob("/usr/lib/*/*.so*"), key=os.path.getsize)
file = os.open(files[-1], os.O_RDONLY)
size = os.fstat(file).st_size
base = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE + 1))()
if libc.mincore(ctypes.c_void_p(base), ctypes.c_size_t(size), pages) == 0:
    print("BREACH", sum(page & 1 for page in pages), "pages lie in memory")
calls = 0


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        global calls
        calls += 1
        if calls == 5:
            os.pread(file, 1, int(x.flatten()[0].abs() * 1000) * mmap.PAGESIZE)
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.softmax(x, dim=1)
