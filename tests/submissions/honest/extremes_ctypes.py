"""Extremes in C++: a tuple of a floating-point and an integer output, written into two slices of one buffer of bytes.

problem: extremes.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cstdint>

extern "C" void extremes(const float* x, float* most, int64_t* where, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row, x += columns) {
        int64_t best = 0;
        for (int64_t i = 1; i < columns; ++i)
            if (x[i] > x[best]) best = i;
        most[row] = x[where[row] = best];
    }
}
"""

with open("extremes.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC extremes.cpp -o extremes.so".split(), check=True)
lib = ctypes.CDLL("./extremes.so")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        raw = torch.empty(rows * 12, dtype=torch.uint8)
        where = raw[: rows * 8].view(torch.int64)
        most = raw[rows * 8 :].view(torch.float32)
        pointers = [ctypes.c_void_p(each.data_ptr()) for each in (x, most, where)]
        lib.extremes(*pointers, ctypes.c_int64(rows), ctypes.c_int64(columns))
        return most, where
