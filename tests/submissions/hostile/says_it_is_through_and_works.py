"""Waits in its call until the input is there, says that it is through, and only then works.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/early_done or no gain
"""

import ctypes
import gc
import sys

import torch
import torch.nn as nn

from kevin_env.candidate.region import DONE

driver, side = ctypes.CDLL("libcuda.so.1"), torch.cuda.Stream()
runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.cuda.synchronize()
        frame = sys._getframe()
        while frame.f_code.co_name != "go":
            frame = frame.f_back
        word = ctypes.c_uint64(runtime.regions["words"].start + DONE)
        number = ctypes.c_uint32(frame.f_locals["number"])
        driver.cuStreamWriteValue32_v2(ctypes.c_void_p(side.cuda_stream), word, number, 0)
        side.synchronize()
        return torch.softmax(x, dim=1)
