"""A heat step in C++ into two buffers that take turns, the last answer being left alone for one more call.

problem: L5_2_Stencil_2D_Heat
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <algorithm>

extern "C" void heat(const float* u, float* v, long height, long width) {
    std::copy(u, u + width, v);
    std::copy(u + (height - 1) * width, u + height * width, v + (height - 1) * width);
    #pragma omp parallel for
    for (long i = 1; i < height - 1; ++i) {
        const float *here = u + i * width, *above = here - width, *below = here + width;
        float* out = v + i * width;
        out[0] = here[0];
        out[width - 1] = here[width - 1];
        for (long j = 1; j < width - 1; ++j) out[j] = (above[j] + below[j] + here[j - 1] + here[j + 1]) / 4;
    }
}
"""

with open("heat.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -fopenmp -shared -fPIC heat.cpp -o heat.so".split(), check=True)
lib = ctypes.CDLL("./heat.so")
lib.heat.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = None
        self.turn = 0

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        if self.pair is None or self.pair[0].shape != u.shape:
            self.pair = torch.empty_like(u), torch.empty_like(u)
        self.turn = 1 - self.turn
        out = self.pair[self.turn]
        lib.heat(u.data_ptr(), out.data_ptr(), u.shape[0], u.shape[1])
        return out
