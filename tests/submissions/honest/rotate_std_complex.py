"""Rotation in C++ on std::complex, written into a buffer of real numbers that is returned as a complex view.

problem: rotate.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <complex>

extern "C" void rotate(const std::complex<float>* x, const float* angle, std::complex<float>* y, long rows,
                       long columns) {
    for (long row = 0; row < rows; ++row) {
        const std::complex<float> turn(std::polar(1.0, double(angle[row])));
        for (long i = 0; i < columns; ++i) y[row * columns + i] = x[row * columns + i] * turn;
    }
}
"""

with open("rotate.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -fcx-limited-range -march=native -shared -fPIC rotate.cpp -o rotate.so".split(), check=True)
lib = ctypes.CDLL("./rotate.so")
lib.rotate.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        parts = torch.empty(*x.shape, 2)
        lib.rotate(x.data_ptr(), angle.data_ptr(), parts.data_ptr(), *x.shape)
        return torch.view_as_complex(parts)
