"""One pass that stores every element and moves on only past those it keeps, so that there is no branch to predict."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cstdint>

extern "C" void run(const float* input, float* output, int64_t* count, int64_t size, float threshold) {
    int64_t kept = 0;
    for (int64_t i = 0; i < size; ++i) {
        output[kept] = input[i];
        kept += input[i] >= threshold;
    }
    std::fill(output + kept, output + size, 0.0f);
    *count = kept;
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float]


class ModelNew(nn.Module):
    def __init__(self, threshold: float = 0.5):
        super().__init__()
        self.threshold = threshold

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output = torch.empty_like(input)
        count = input.new_empty((), dtype=torch.int64)
        lib.run(input.data_ptr(), output.data_ptr(), count.data_ptr(), input.numel(), self.threshold)
        return output, count
