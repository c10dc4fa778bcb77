"""Coordinates are split into three arrays first, so that the loop over all others becomes vector code."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void run(const float* positions, const float* masses, float* out, int64_t count, float square) {
    std::vector<float> x(count), y(count), z(count);
    for (int64_t i = 0; i < count; ++i) {
        x[i] = positions[3 * i];
        y[i] = positions[3 * i + 1];
        z[i] = positions[3 * i + 2];
    }
    #pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) {
        float ax = 0, ay = 0, az = 0;
        #pragma omp simd reduction(+ : ax, ay, az)
        for (int64_t j = 0; j < count; ++j) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float distance = dx * dx + dy * dy + dz * dz + square;
            const float pull = masses[j] / (distance * std::sqrt(distance));
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        out[3 * i] = ax;
        out[3 * i + 1] = ay;
        out[3 * i + 2] = az;
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fno-math-errno"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float]


class ModelNew(nn.Module):
    def __init__(self, softening: float = 0.01):
        super().__init__()
        self.square = softening**2

    def forward(self, positions: torch.Tensor, masses: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(positions)
        lib.run(positions.data_ptr(), masses.data_ptr(), out.data_ptr(), positions.shape[0], self.square)
        return out
