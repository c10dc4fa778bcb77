"""Rows first, each on its own, then the rows along the horizontal edges: in place on the output, without a list of edges."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <cstdlib>
#include <cstring>

static void smooth(uint8_t* at, int64_t step, int alpha, int beta) {
    const int p1 = at[-2 * step], p0 = at[-step], q0 = at[0], q1 = at[step];
    if (abs(p0 - q0) >= alpha || abs(p1 - p0) >= beta || abs(q1 - q0) >= beta) return;
    at[-step] = uint8_t((2 * p1 + p0 + q0 + 2) >> 2);
    at[0] = uint8_t((2 * q1 + q0 + p0 + 2) >> 2);
}

extern "C" void run(const uint8_t* frame, uint8_t* out, int64_t height, int64_t width, int size, int alpha,
                    int beta) {
    #pragma omp parallel for
    for (int64_t row = 0; row < height; ++row) {
        std::memcpy(out + row * width, frame + row * width, width);
        for (int64_t x = size; x < width - 1; x += size) smooth(out + row * width + x, 1, alpha, beta);
    }
    #pragma omp parallel for
    for (int64_t row = size; row < height - 1; row += size)
        for (int64_t x = 0; x < width; ++x) smooth(out + row * width + x, width, alpha, beta);
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
]


class ModelNew(nn.Module):
    def __init__(self, block_size: int = 8, alpha: int = 40, beta: int = 8):
        super().__init__()
        self.edges = (block_size, alpha, beta)

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(frame)
        lib.run(frame.data_ptr(), out.data_ptr(), frame.shape[0], frame.shape[1], *self.edges)
        return out
