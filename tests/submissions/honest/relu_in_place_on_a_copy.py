"""ReLU in C++ that works in place on a buffer of its own, into which the input was copied.

problem: relu.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void clear_negative(float* x, int64_t count) {
    int32_t bits;
    for (int64_t i = 0; i < count; ++i) {  // without a branch: the sign, spread over the word, clears it
        std::memcpy(&bits, x + i, 4);
        bits &= ~(bits >> 31);
        std::memcpy(x + i, &bits, 4);
    }
}
"""

with open("clear.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC clear.cpp -o clear.so".split(), check=True)
lib = ctypes.CDLL("./clear.so")
lib.clear_negative.argtypes = [ctypes.c_void_p, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.own.resize_(x.shape).copy_(x)
        lib.clear_negative(self.own.data_ptr(), self.own.numel())
        return self.own
