"""Rows are divided among threads; fast-math lets the compiler turn the exponentials into vector code."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * columns;
        float* out = y + row * columns;
        float most = in[0], sum = 0;
        for (int64_t i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
        for (int64_t i = 0; i < columns; ++i) out[i] = std::exp(in[i] - most);
        for (int64_t i = 0; i < columns; ++i) sum += out[i];
        for (int64_t i = 0; i < columns; ++i) out[i] /= sum;
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-ffast-math"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        lib.run(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
