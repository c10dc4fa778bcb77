"""The whole step in one pass, sixteen bytes per load: four vectors in, three out."""

import ctypes
import math
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

struct Constants { float beta1, rest1, beta2, rest2, decay, rate, root, eps; };

__device__ void step(float& p, float g, float& m, float& v, const Constants& k) {
    m = k.beta1 * m + k.rest1 * g;
    v = k.beta2 * v + k.rest2 * (g * g);
    p = p * k.decay - k.rate * m / (sqrtf(v) * k.root + k.eps);
}

__global__ void adamw_kernel(const float* param, const float* grad, const float* avg, const float* avg_sq,
                             float* new_param, float* new_avg, float* new_avg_sq, int64_t count, Constants k) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (4 * i + 3 < count) {
        float4 p = __ldcs(reinterpret_cast<const float4*>(param) + i);
        const float4 g = __ldcs(reinterpret_cast<const float4*>(grad) + i);
        float4 m = __ldcs(reinterpret_cast<const float4*>(avg) + i);
        float4 v = __ldcs(reinterpret_cast<const float4*>(avg_sq) + i);
        step(p.x, g.x, m.x, v.x, k);
        step(p.y, g.y, m.y, v.y, k);
        step(p.z, g.z, m.z, v.z, k);
        step(p.w, g.w, m.w, v.w, k);
        __stcs(reinterpret_cast<float4*>(new_param) + i, p);
        __stcs(reinterpret_cast<float4*>(new_avg) + i, m);
        __stcs(reinterpret_cast<float4*>(new_avg_sq) + i, v);
        return;
    }
    for (int64_t j = 4 * i; j < count; ++j) {
        float p = param[j], m = avg[j], v = avg_sq[j];
        step(p, grad[j], m, v, k);
        new_param[j] = p;
        new_avg[j] = m;
        new_avg_sq[j] = v;
    }
}

extern "C" int run(const float* param, const float* grad, const float* avg, const float* avg_sq, float* new_param,
                   float* new_avg, float* new_avg_sq, int64_t count, float beta1, float rest1, float beta2,
                   float rest2, float decay, float rate, float root, float eps, cudaStream_t stream) {
    const Constants k{beta1, rest1, beta2, rest2, decay, rate, root, eps};
    adamw_kernel<<<(count + 1023) / 1024, 256, 0, stream>>>(
        param, grad, avg, avg_sq, new_param, new_avg, new_avg_sq, count, k);
    return cudaGetLastError();
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cu").write_text(SOURCE)
    major, minor = torch.cuda.get_device_capability()
    options = ["-O3", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run(["nvcc", *options, "kernel.cu", "-o", "kernel.so"], check=True, capture_output=True, text=True)
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
    ctypes.c_void_p,
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
        status = lib.run(
            param.data_ptr(), grad.data_ptr(), exp_avg.data_ptr(), exp_avg_sq.data_ptr(), p.data_ptr(), m.data_ptr(),
            v.data_ptr(), param.numel(), *self.constants, torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return p, m, v
