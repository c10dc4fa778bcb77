"""Nine products per pixel in one loop over memory: a matrix product with three columns would be mostly overhead."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void run(const float* __restrict__ rgb, const float* matrix, float* __restrict__ yuv, int64_t pixels) {
    float m[9];
    for (int i = 0; i < 9; ++i) m[i] = matrix[i];
    #pragma omp parallel for simd
    for (int64_t p = 0; p < pixels; ++p) {
        const float r = rgb[3 * p], g = rgb[3 * p + 1], b = rgb[3 * p + 2];
        yuv[3 * p] = m[0] * r + m[1] * g + m[2] * b;
        yuv[3 * p + 1] = m[3] * r + m[4] * g + m[5] * b;
        yuv[3 * p + 2] = m[6] * r + m[7] * g + m[8] * b;
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("conversion_matrix", torch.empty(3, 3))

    def forward(self, rgb: torch.Tensor) -> torch.Tensor:
        yuv = torch.empty_like(rgb)
        lib.run(rgb.data_ptr(), self.conversion_matrix.data_ptr(), yuv.data_ptr(), rgb.shape[0] * rgb.shape[1])
        return yuv
