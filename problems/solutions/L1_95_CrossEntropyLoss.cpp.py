"""Each row is read twice while it is in the cache, nothing but its loss is written, and losses are added as doubles."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void run(const float* scores, const int64_t* targets, float* loss, int64_t rows, int64_t columns) {
    double total = 0;
    #pragma omp parallel for reduction(+ : total)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = scores + row * columns;
        float most = in[0], sum = 0;
        for (int64_t i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
        for (int64_t i = 0; i < columns; ++i) sum += std::exp(in[i] - most);
        total += std::log(double(sum)) + most - in[targets[row]];
    }
    *loss = float(total / rows);
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-ffast-math"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows, columns = predictions.shape
        loss = predictions.new_empty(())
        lib.run(predictions.data_ptr(), targets.data_ptr(), loss.data_ptr(), rows, columns)
        return loss
