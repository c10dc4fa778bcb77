"""Column sums in C++ by a tree: halves of the rows are summed by themselves, on threads that are joined.

problem: column_sums.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <future>
#include <vector>

static std::vector<float> tree(const float* x, long rows, long columns, int forks) {
    if (rows <= 8) {
        std::vector<float> sum(x, x + columns);
        for (long row = 1; row < rows; ++row)
            for (long i = 0; i < columns; ++i) sum[i] += x[row * columns + i];
        return sum;
    }
    const long half = rows / 2;
    auto policy = forks ? std::launch::async : std::launch::deferred;
    auto lower = std::async(policy, tree, x, half, columns, forks - (forks > 0));
    auto upper = tree(x + half * columns, rows - half, columns, forks - (forks > 0));
    auto sum = lower.get();
    for (long i = 0; i < columns; ++i) sum[i] += upper[i];
    return sum;
}

extern "C" void column_sums(const float* x, float* y, long rows, long columns) {
    auto sum = tree(x, rows, columns, 1);
    for (long i = 0; i < columns; ++i) y[i] = sum[i];
}
"""

with open("tree.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -pthread -shared -fPIC tree.cpp -o tree.so".split(), check=True)
lib = ctypes.CDLL("./tree.so")
lib.column_sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[1], dtype=x.dtype)
        lib.column_sums(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
        return y
