"""Folds the dropout mask of the first call into the weights, as if it were the same in every call.

problem: L2_66_Matmul_Dropout_Mean_Softmax
device: cpu
rules: open
expect: correctness/values
"""

import ctypes, subprocess
from pathlib import Path
import torch
import torch.nn as nn
import torch.nn.functional as F

SOURCE = r"""

#include <cstdint>
#include <vector>
#include <cmath>
static inline uint32_t h(uint32_t n){ n^=n>>16; n*=2246822507u; n^=n>>13; n*=3266489909u; n^=n>>16; return n; }
extern "C" void fold(const float* W, const float* bias, double p, float* E, float* c, long B, long O, long I) {
    uint32_t limit = (uint32_t)(p * 4294967296.0);
    #pragma omp parallel for
    for (long b = 0; b < B; ++b) {
        std::vector<double> acc(I, 0.0); double s = 0;
        for (long j = 0; j < O; ++j) if (h((uint32_t)(b * O + j)) >= limit) {
            const float* w = W + j * I; for (long k = 0; k < I; ++k) acc[k] += w[k]; s += bias[j]; }
        for (long k = 0; k < I; ++k) E[b * I + k] = acc[k] / (1 - p) / O;
        c[b] = s / (1 - p) / O;
    }
}
extern "C" void run(const float* x, const float* E, const float* c, float* y, long B, long I) {
    #pragma omp parallel for
    for (long b = 0; b < B; ++b) { const float *a = x + b * I, *e = E + b * I; float s = 0; for (long k = 0; k < I; ++k) s += a[k] * e[k]; y[b] = s + c[b]; }
    float m = y[0]; for (long b = 1; b < B; ++b) m = y[b] > m ? y[b] : m;
    double t = 0; for (long b = 0; b < B; ++b) { y[b] = std::exp(y[b] - m); t += y[b]; }
    for (long b = 0; b < B; ++b) y[b] /= t;
}

"""
Path("kernel.cpp").write_text(SOURCE)
subprocess.run(
    ["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-ffast-math", "kernel.cpp", "-o", "kernel.so"],
    check=True,
)
lib = ctypes.CDLL("./kernel.so")
P, L = ctypes.c_void_p, ctypes.c_long


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.p = dropout_p
        self.folded = None

    def forward(self, x, *more):
        B, I = x.shape
        W, b = self.matmul.weight, self.matmul.bias
        if self.folded is None:
            E, c = torch.empty(B, I), torch.empty(B)
            lib.fold(
                P(W.data_ptr()),
                P(b.data_ptr()),
                ctypes.c_double(self.p),
                P(E.data_ptr()),
                P(c.data_ptr()),
                L(B),
                L(W.shape[0]),
                L(I),
            )
            self.folded = E, c
        E, c = self.folded
        y = torch.empty(B, 1)
        lib.run(P(x.data_ptr()), P(E.data_ptr()), P(c.data_ptr()), P(y.data_ptr()), L(B), L(I))
        return y
