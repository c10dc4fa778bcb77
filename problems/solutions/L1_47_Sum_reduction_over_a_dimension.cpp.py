"""Rows are added to a strip of columns that stays in the first cache, so that memory is read in order and once."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cstdint>

const int64_t STRIP = 1024;

extern "C" void run(const float* x, float* y, int64_t samples, int64_t rows, int64_t columns) {
    const int64_t strips = (columns + STRIP - 1) / STRIP;
    #pragma omp parallel for
    for (int64_t part = 0; part < samples * strips; ++part) {
        const int64_t sample = part / strips, first = part % strips * STRIP;
        const int64_t count = std::min(STRIP, columns - first);
        float sums[STRIP] = {};
        for (int64_t row = 0; row < rows; ++row) {
            const float* in = x + (sample * rows + row) * columns + first;
            for (int64_t i = 0; i < count; ++i) sums[i] += in[i];
        }
        std::copy(sums, sums + count, y + sample * columns + first);
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, rows, columns = x.shape
        y = x.new_empty(samples, 1, columns)
        lib.run(x.data_ptr(), y.data_ptr(), samples, rows, columns)
        return y
