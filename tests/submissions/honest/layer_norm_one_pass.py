"""Layer normalisation with sum and sum of squares in one float32 pass, eight partial sums; affine weights flattened.

problem: L1_40_LayerNorm
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

CPP_TEMPLATE = r"""
#include <cmath>
extern "C" void layer_norm(const float* x, const float* w, const float* b, float* y, long rows, long n) {
    for (long r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float s[LANES] = {0}, q[LANES] = {0};
        for (long i = 0; i < n; ++i) { s[i % LANES] += in[i]; q[i % LANES] += in[i] * in[i]; }
        float sum = 0, squares = 0;
        for (int l = 0; l < LANES; ++l) { sum += s[l]; squares += q[l]; }
        const float mean = sum / n, rstd = 1.0f / std::sqrt(squares / n - mean * mean + EPS);
        for (long i = 0; i < n; ++i) y[r * n + i] = (in[i] - mean) * rstd * w[i] + b[i];
    }
}
"""
CPP = CPP_TEMPLATE.replace("LANES", "8").replace("EPS", "1e-5f")


def build(source: str, *, name: str = "ln") -> ctypes.CDLL:
    open(f"{name}.cpp", "wt").write(source)
    subprocess.run(["g++", "-O3", f"{name}.cpp", "-o", f"{name}.so", "-shared", "-fPIC"], check=True)
    return ctypes.CDLL(f"./{name}.so")


class ModelNew(nn.Module):
    lib = build(CPP)

    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        rows = x.shape[0]
        n = self.ln.weight.numel()
        assert x.shape[1:] == self.ln.normalized_shape == self.ln.weight.shape
        y = torch.empty_like(x.view(rows, n))
        weight, bias = self.ln.weight.view(-1), self.ln.bias.view(-1)
        self.lib.layer_norm(*(ctypes.c_void_p(t.data_ptr()) for t in (x, weight, bias, y)), ctypes.c_long(rows), ctypes.c_long(n))
        return y.view_as(x)
