"""Rows are handed to threads in small batches, because some are far longer than others; nothing is stored between."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

extern "C" void run(const float* values, const int64_t* columns, const int64_t* row_ptrs, const float* x, float* y,
                    int64_t rows) {
    #pragma omp parallel for schedule(dynamic, 256)
    for (int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        #pragma omp simd reduction(+ : sum)
        for (int64_t k = row_ptrs[row]; k < row_ptrs[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self, num_rows: int, num_cols: int):
        super().__init__()
        self.num_rows = num_rows

    def forward(
        self, values: torch.Tensor, col_indices: torch.Tensor, row_ptrs: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        y = x.new_empty(self.num_rows)
        lib.run(
            values.data_ptr(), col_indices.data_ptr(), row_ptrs.data_ptr(), x.data_ptr(), y.data_ptr(), self.num_rows
        )
        return y
