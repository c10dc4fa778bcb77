"""Log-sum-exp in C++ for rows of any length: eight chains where there are eight elements, one where there are fewer.

problem: log_sum_exp.py
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
#include <cmath>

static float row(const float* x, long n) {
    const float most = *std::max_element(x, x + n);
    float sum[8] = {};
    long i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; ++j) sum[j] += std::exp(x[i + j] - most);
    for (; i < n; ++i) sum[0] += std::exp(x[i] - most);
    for (int reach = 4; reach; reach /= 2)
        for (int j = 0; j < reach; ++j) sum[j] += sum[j + reach];
    return most + std::log(sum[0]);
}

extern "C" void log_sum_exp(const float* x, float* y, long rows, long columns) {
    for (long i = 0; i < rows; ++i) y[i] = row(x + i * columns, columns);
}
"""

with open("lse.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC lse.cpp -o lse.so".split(), check=True)
lib = ctypes.CDLL("./lse.so")
lib.log_sum_exp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 2 or x.shape[1] == 0:
            raise ValueError(f"rows of at least one element are needed, not {tuple(x.shape)}")
        y = torch.empty(x.shape[0])
        lib.log_sum_exp(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
