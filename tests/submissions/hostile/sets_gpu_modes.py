"""Sets modes of the GPU through the driver's management library, to what they are already.

problem: softmax.py
device: cuda
rules: open
expect: correctness/values
"""

import ctypes

import torch
import torch.nn as nn

nvml = ctypes.CDLL("libnvidia-ml.so.1")
handle, mode = ctypes.c_void_p(), ctypes.c_uint()
if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
    for name in ("PersistenceMode", "ComputeMode"):
        if getattr(nvml, f"nvmlDeviceGet{name}")(handle, ctypes.byref(mode)) == 0:
            if getattr(nvml, f"nvmlDeviceSet{name}")(handle, mode) == 0:
                print("BREACH: sets the GPU's", name)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
