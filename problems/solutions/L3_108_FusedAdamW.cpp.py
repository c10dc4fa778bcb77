"""The whole step in one loop, which the compiler turns into vector code: four vectors in, three out."""

import ctypes
import math
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void run(const float* __restrict__ param, const float* __restrict__ grad, const float* __restrict__ avg,
                    const float* __restrict__ avg_sq, float* __restrict__ new_param, float* __restrict__ new_avg,
                    float* __restrict__ new_avg_sq, int64_t count, float beta1, float rest1, float beta2, float rest2,
                    float decay, float rate, float root, float eps) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < count; ++i) {
        const float g = grad[i], m = beta1 * avg[i] + rest1 * g, v = beta2 * avg_sq[i] + rest2 * (g * g);
        new_param[i] = param[i] * decay - rate * m / (std::sqrt(v) * root + eps);
        new_avg[i] = m;
        new_avg_sq[i] = v;
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fno-math-errno"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
    ctypes.c_float,
]


class ModelNew(nn.Module):
    def __init__(self, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: int):
        super().__init__()
        rate, root = lr / (1 - beta1**step), 1 / math.sqrt(1 - beta2**step)
        self.constants = (beta1, 1 - beta1, beta2, 1 - beta2, 1 - lr * weight_decay, rate, root, eps)

    def forward(
        self, param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        p, m, v = torch.empty_like(param), torch.empty_like(param), torch.empty_like(param)
        lib.run(
            param.data_ptr(), grad.data_ptr(), exp_avg.data_ptr(), exp_avg_sq.data_ptr(), p.data_ptr(), m.data_ptr(),
            v.data_ptr(), param.numel(), *self.constants,
        )  # fmt: skip
        return p, m, v
