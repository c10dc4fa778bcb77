"""Running sums of integers in C++, in blocks: sums of the blocks first, then every block from its own start.

problem: running_count.py
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
#include <thread>
#include <vector>

extern "C" void running(const int64_t* x, int64_t* y, int64_t rows, int64_t columns, int64_t block) {
    const int64_t blocks = (columns + block - 1) / block;
    std::vector<int64_t> start(rows * blocks);
    auto over = [&](auto&& job) {
        std::vector<std::thread> crew;
        for (int64_t half = 0; half < 2; ++half)
            crew.emplace_back([&, half] {
                for (int64_t i = half * rows / 2; i < (half + 1) * rows / 2; ++i) job(i);
            });
        for (auto& member : crew) member.join();
    };
    over([&](int64_t row) {
        for (int64_t b = 0; b + 1 < blocks; ++b) {
            int64_t sum = 0;
            for (int64_t i = b * block; i < (b + 1) * block; ++i) sum += x[row * columns + i];
            start[row * blocks + b + 1] = start[row * blocks + b] + sum;
        }
    });
    over([&](int64_t row) {
        for (int64_t b = 0; b < blocks; ++b) {
            int64_t sum = start[row * blocks + b];
            for (int64_t i = b * block; i < columns && i < (b + 1) * block; ++i)
                y[row * columns + i] = sum += x[row * columns + i];
        }
    });
}
"""

with open("running.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -std=c++17 -O3 -pthread -shared -fPIC running.cpp -o running.so".split(), check=True)
lib = ctypes.CDLL("./running.so")
lib.running.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    BLOCK = 128

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        lib.running(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], self.BLOCK)
        return y
