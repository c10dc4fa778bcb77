"""RMS normalisation in C++ with the positions innermost, reciprocal square roots and a contiguous input assured.

problem: L1_36_RMSNorm_
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
#include <vector>

extern "C" void rms_norm(const float* x, float* y, long batch, long features, long positions, float eps) {
    #pragma omp parallel
    {
        std::vector<float> scale(512);
        #pragma omp for collapse(2)
        for (long b = 0; b < batch; ++b)
            for (long first = 0; first < positions; first += 512) {
                const long count = std::min(512L, positions - first);
                const float* in = x + b * features * positions + first;
                float* out = y + b * features * positions + first;
                std::fill(scale.begin(), scale.end(), 0.0f);
                for (long c = 0; c < features; ++c)
                    for (long p = 0; p < count; ++p) scale[p] += in[c * positions + p] * in[c * positions + p];
                for (long p = 0; p < count; ++p) scale[p] = 1 / std::sqrt(scale[p] / features + eps);
                for (long c = 0; c < features; ++c)
                    for (long p = 0; p < count; ++p) out[c * positions + p] = in[c * positions + p] * scale[p];
            }
    }
}
"""

with open("rms.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -fno-math-errno -fopenmp -shared -fPIC rms.cpp -o rms.so".split(), check=True)
lib = ctypes.CDLL("./rms.so")
lib.rms_norm.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_long] * 3, ctypes.c_float]


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.num_features, self.eps = num_features, eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, features, *rest = x.shape
        y = torch.empty_like(x)
        lib.rms_norm(x.data_ptr(), y.data_ptr(), batch, features, x[0, 0].numel(), self.eps)
        return y
