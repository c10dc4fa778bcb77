"""A channel's samples, with its state before them, are copied to a line that every tap runs over in vector code."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void run(const float* x, const float* state, const float* weight, const float* bias, float* y,
                    int64_t rows, int64_t dim, int64_t length, int64_t width) {
    #pragma omp parallel
    {
        std::vector<float> line(width - 1 + length), sums(length);
        #pragma omp for
        for (int64_t row = 0; row < rows; ++row) {
            const float* taps = weight + row % dim * width;
            std::copy(state + row * (width - 1), state + (row + 1) * (width - 1), line.begin());
            std::copy(x + row * length, x + (row + 1) * length, line.begin() + width - 1);
            sums.assign(length, bias[row % dim]);
            for (int64_t j = 0; j < width; ++j)
                for (int64_t t = 0; t < length; ++t) sums[t] += taps[j] * line[t + j];
            float* out = y + row * length;
            for (int64_t t = 0; t < length; ++t) out[t] = sums[t] / (1 + std::exp(std::min(-sums[t], 80.0f)));
        }
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-ffast-math"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
]


class ModelNew(nn.Module):
    def __init__(self, dim: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, width))
        self.bias = nn.Parameter(torch.empty(dim))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        batch, dim, length = x.shape
        y = torch.empty_like(x)
        lib.run(
            x.data_ptr(), state.data_ptr(), self.weight.data_ptr(), self.bias.data_ptr(), y.data_ptr(), batch * dim,
            dim, length, self.weight.shape[1],
        )  # fmt: skip
        return y
