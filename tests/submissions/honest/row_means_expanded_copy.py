"""Row means in C++, expanded along the rows and made contiguous by torch, which the rules count as shaping.

problem: row_means.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void means(const float* x, float* y, long rows, long columns) {
    for (long row = 0; row < rows; ++row) {
        double sum = 0;
        for (long i = 0; i < columns; ++i) sum += x[row * columns + i];
        y[row] = float(sum / columns);
    }
}
"""

with open("means.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -ffast-math -march=native -shared -fPIC means.cpp -o means.so".split(), check=True)
lib = ctypes.CDLL("./means.so")
lib.means.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        means = x.new_empty(x.shape[0])
        lib.means(x.data_ptr(), means.data_ptr(), x.shape[0], x.shape[1])
        return means.unsqueeze(1).expand(-1, x.shape[1]).contiguous()
