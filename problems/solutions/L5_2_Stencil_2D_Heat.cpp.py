"""Rows are divided among threads; each is one vector loop over its neighbours, with the border copied."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cstdint>

extern "C" void run(const float* u, float* out, int64_t height, int64_t width) {
    #pragma omp parallel for
    for (int64_t row = 0; row < height; ++row) {
        const float* in = u + row * width;
        float* to = out + row * width;
        if (row == 0 || row == height - 1) {
            std::copy(in, in + width, to);
            continue;
        }
        to[0] = in[0];
        #pragma omp simd
        for (int64_t i = 1; i < width - 1; ++i) to[i] = 0.25f * (in[i - width] + in[i + width] + in[i - 1] + in[i + 1]);
        to[width - 1] = in[width - 1];
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, u: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(u)
        lib.run(u.data_ptr(), out.data_ptr(), u.shape[0], u.shape[1])
        return out
