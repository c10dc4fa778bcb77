"""Histogram in C++ with bins of its own for every thread, which are added up when all have been joined.

problem: L6_2_Histogram_256
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
#include <array>
#include <cstdint>
#include <thread>
#include <vector>

extern "C" void histogram(const int64_t* data, int64_t count, int64_t* bins) {
    const int64_t threads = std::max<int64_t>(1, std::min<int64_t>(2, count / 4096));
    std::vector<std::array<int64_t, 256>> own(threads);
    std::vector<std::thread> crew;
    for (int64_t t = 0; t < threads; ++t)
        crew.emplace_back([&, t] {
            own[t].fill(0);
            for (int64_t i = count * t / threads; i < count * (t + 1) / threads; ++i)
                ++own[t][std::clamp<int64_t>(data[i], 0, 255)];
        });
    for (auto& thread : crew) thread.join();
    for (int v = 0; v < 256; ++v) {
        bins[v] = 0;
        for (const auto& each : own) bins[v] += each[v];
    }
}
"""

with open("histogram.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -std=c++17 -O3 -pthread -shared -fPIC histogram.cpp -o histogram.so".split(), check=True)
lib = ctypes.CDLL("./histogram.so")
lib.histogram.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, data: torch.Tensor) -> torch.Tensor:
        bins = torch.empty(256, dtype=torch.int64)
        lib.histogram(data.data_ptr(), data.numel(), bins.data_ptr())
        return bins
