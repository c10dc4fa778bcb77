"""Softmax in C++ without any torch header, built by g++ and called through ctypes.

problem: L1_23_Softmax
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cmath>
#include <thread>

extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    auto some = [=](long first, long last) {
        for (long row = first; row < last; ++row) {
            const float* in = x + row * columns;
            float* out = y + row * columns;
            float most = in[0];
            for (long i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
            float sum = 0;
            for (long i = 0; i < columns; ++i) sum += out[i] = std::exp(in[i] - most);
            for (long i = 0; i < columns; ++i) out[i] /= sum;
        }
    };
    std::thread half(some, 0, rows / 2);
    some(rows / 2, rows);
    half.join();
}
"""


def build() -> ctypes.CDLL:
    with open("softmax.cpp", "w") as file:
        file.write(SOURCE)
    command = "g++ -O3 -march=native -ffast-math -shared -fPIC -pthread softmax.cpp -o libsoftmax.so"
    subprocess.run(command.split(), check=True, capture_output=True, text=True)
    return ctypes.CDLL("./libsoftmax.so")


lib = build()
lib.softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        lib.softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
