"""Softmax as an autograd function of its own, with a backward pass, around a kernel in C++.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cmath>

extern "C" void forward(const float* x, float* y, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        for (long i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }
}

extern "C" void backward(const float* y, const float* upstream, float* gradient, long rows, long columns) {
    for (long row = 0; row < rows; ++row, y += columns, upstream += columns, gradient += columns) {
        float dot = 0;
        for (long i = 0; i < columns; ++i) dot += y[i] * upstream[i];
        for (long i = 0; i < columns; ++i) gradient[i] = y[i] * (upstream[i] - dot);
    }
}
"""

with open("both.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC both.cpp -o both.so".split(), check=True)
lib = ctypes.CDLL("./both.so")
lib.forward.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_long] * 2
lib.backward.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 2


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        lib.forward(x.data_ptr(), y.data_ptr(), *x.shape)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, upstream):
        (y,) = ctx.saved_tensors
        upstream = upstream.contiguous()
        gradient = torch.empty_like(y)
        lib.backward(y.data_ptr(), upstream.data_ptr(), gradient.data_ptr(), *y.shape)
        return gradient


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Softmax.apply(x)
