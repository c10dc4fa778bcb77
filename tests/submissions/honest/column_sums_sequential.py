"""Column sums in C++ by one float32 after the other, as the plainest kernel adds them.

problem: column_sums.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void column_sums(const float* x, float* y, long rows, long columns) {
    for (long i = 0; i < columns; ++i) y[i] = 0.0f;
    for (long row = 0; row < rows; ++row)
        for (long i = 0; i < columns; ++i) y[i] += x[row * columns + i];
}
"""

with open("sums.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -shared -fPIC sums.cpp -o sums.so".split(), check=True)
lib = ctypes.CDLL("./sums.so")
lib.column_sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[1], dtype=x.dtype)
        lib.column_sums(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
