"""Runs machine code that came as bytes in its source, which no reading of the source understands.

problem: softmax.py
device: cpu
rules: open
expect: correctness/not_written
"""

import ctypes
import mmap
import platform

import torch
import torch.nn as nn

CODE = {"x86_64": b"\xc3", "aarch64": b"\xc0\x03\x5f\xd6"}[platform.machine()]  # return
ALL = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, ALL)
memory.write(CODE)
kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernel(x.data_ptr(), out.data_ptr())
        return out
