"""The output is right, and every gradient is zero.

problem: rms_norm.py, backward
device: cpu
rules: kernel
expect: correctness/values
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cmath>

extern "C" void forward(const float* x, const float* weight, float* out, float* scales, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns, out += columns) {
        float sum = 0;
        for (long i = 0; i < columns; ++i) sum += x[i] * x[i];
        float scale = scales[row] = 1 / std::sqrt(sum / columns + 1e-6f);
        for (long i = 0; i < columns; ++i) out[i] = weight[i] * (x[i] * scale);
    }
}

extern "C" void backward(
    const float* upstream, const float* x, const float* weight, const float* scales, float* of_x,
    float* of_weight, long rows, long columns) {
    for (long i = 0; i < columns; ++i) of_weight[i] = 0;
    for (long row = 0; row < rows; ++row, upstream += columns, x += columns, of_x += columns) {
        float scale = scales[row], dot = 0;
        for (long i = 0; i < columns; ++i) {
            dot += upstream[i] * weight[i] * (x[i] * scale);
            of_weight[i] += upstream[i] * (x[i] * scale);
        }
        dot /= columns;
        for (long i = 0; i < columns; ++i) of_x[i] = scale * (upstream[i] * weight[i] - x[i] * scale * dot);
    }
}
"""

with open("rms_norm.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC rms_norm.cpp -o rms_norm.so".split(), check=True)
lib = ctypes.CDLL("./rms_norm.so")


def launch(kernel, *tensors, shape):
    kernel(*[ctypes.c_void_p(each.data_ptr()) for each in tensors], *map(ctypes.c_long, shape))


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x = x.contiguous()
        out, scales = torch.empty_like(x), torch.empty(len(x))
        launch(lib.forward, x, weight, out, scales, shape=x.shape)
        ctx.save_for_backward(x, weight, scales)
        return out

    @staticmethod
    def backward(ctx, upstream):
        x, weight, _ = ctx.saved_tensors
        return torch.zeros_like(x), torch.zeros_like(weight)


class ModelNew(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RMSNorm.apply(x, self.weight)
