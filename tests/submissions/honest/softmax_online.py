"""Softmax in C++ by one pass for maximum and sum together, which rescales the sum at every new maximum.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
from pathlib import Path

import torch
import torch.nn as nn

Path("online.cpp").write_text(r"""
#include <cmath>
#include <cstdint>
#include <limits>

extern "C" void online_softmax(const float* in, float* out, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row, in += columns, out += columns) {
        float running = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t i = 0; i < columns; ++i) {
            const float before = running;
            running = std::fmax(running, in[i]);
            sum = sum * std::exp(before - running) + std::exp(in[i] - running);
        }
        const float scale = 1 / sum;
        for (int64_t i = 0; i < columns; ++i) out[i] = std::exp(in[i] - running) * scale;
    }
}
""")
subprocess.check_call(["g++", "-O2", "-shared", "-fPIC", "-o", "online.so", "online.cpp"])
library = ctypes.CDLL("./online.so")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y))
        library.online_softmax(*pointers, ctypes.c_int64(x.size(0)), ctypes.c_int64(x.size(1)))
        return y
