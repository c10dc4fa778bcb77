"""Computes on a stream of the driver's own that does not wait for any other, and joins nothing.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/values or no gain
"""

import ctypes

import torch
import torch.nn as nn

raw = ctypes.c_void_p()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(raw), 1)  # CU_STREAM_NON_BLOCKING
        self.side = torch.cuda.ExternalStream(raw.value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            return torch.softmax(x, dim=1)
