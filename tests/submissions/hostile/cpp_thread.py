"""Returns at once what a thread in C++, which Python knows nothing of, fills in a few milliseconds later.

problem: row_norms.py
device: cpu
rules: open
expect: correctness/early_done
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <chrono>
#include <cmath>
#include <thread>
extern "C" void norms(const float* x, float* out, long rows, long columns) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        for (long row = 0; row < rows; ++row) {
            float sum = 0;
            for (long i = 0; i < columns; ++i) sum += x[row * columns + i] * x[row * columns + i];
            out[row] = std::sqrt(sum);
        }
    }).detach();
}
"""
with open("norms.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O2 -shared -fPIC -pthread norms.cpp -o libnorms.so".split(), check=True)
lib = ctypes.CDLL("./libnorms.so")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0])
        lib.norms(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *map(ctypes.c_long, x.shape))
        return out
