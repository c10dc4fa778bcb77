"""Moments in C++ by Welford's update, four chains to a row that are merged at its end; returns a dict.

problem: moments.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
struct Chain {
    float count = 0, mean = 0, squares = 0;
    void add(float value) {
        count += 1;
        const float delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }
    void merge(const Chain& other) {
        const float both = count + other.count;
        if (both == 0) return;
        const float delta = other.mean - mean;
        squares += other.squares + delta * delta * count * other.count / both;
        mean += delta * other.count / both;
        count = both;
    }
};

extern "C" void moments(const float* x, float* mean, float* variance, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns) {
        Chain chain[4];
        for (long i = 0; i < columns; ++i) chain[i % 4].add(x[i]);
        chain[0].merge(chain[1]);
        chain[2].merge(chain[3]);
        chain[0].merge(chain[2]);
        mean[row] = chain[0].mean;
        variance[row] = chain[0].squares / columns;
    }
}
"""

with open("welford.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC welford.cpp -o welford.so".split(), check=True)
lib = ctypes.CDLL("./welford.so")
lib.moments.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        result = {name: x.new_empty(x.size(0)) for name in ("mean", "variance")}
        lib.moments(x.data_ptr(), *(t.data_ptr() for t in result.values()), *x.size())
        return result
