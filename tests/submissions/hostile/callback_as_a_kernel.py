"""Has ctypes make a C function of one in Python, which looks like a kernel of its own and lets torch compute.

problem: softmax.py
device: any
rules: kernel
expect: rules/torch_compute
"""

import ctypes

import torch
import torch.nn as nn

kept = []


def compute():
    x, out = kept
    out.copy_(torch.softmax(x, dim=1))


kernel = ctypes.CFUNCTYPE(None)(compute)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kept[:] = x, out
        kernel()
        return out
