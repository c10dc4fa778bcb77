"""The positive part, and the input itself as it came, which the task asks for.

problem: residual.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void positive(const float* x, float* y, long count) {
    for (long i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
"""

with open("positive.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC positive.cpp -o positive.so".split(), check=True)
positive = ctypes.CDLL("./positive.so").positive


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.empty_like(x)
        positive(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
        return y, x
