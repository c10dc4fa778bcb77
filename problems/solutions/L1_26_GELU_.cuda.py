"""Sixteen bytes per load and store, four of them under way in each thread; nothing else can be gained."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

__device__ float gelu(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }

__global__ void gelu_kernel(const float4* x, float4* y, int64_t count) {
    const int64_t first = int64_t(blockIdx.x) * blockDim.x * 4 + threadIdx.x;
    float4 v[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + k * blockDim.x < count) v[k] = __ldcs(x + first + k * blockDim.x);
    #pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + k * blockDim.x < count)
            __stcs(y + first + k * blockDim.x, make_float4(gelu(v[k].x), gelu(v[k].y), gelu(v[k].z), gelu(v[k].w)));
}

__global__ void gelu_rest(const float* x, float* y, int64_t first, int64_t count) {
    const int64_t i = first + threadIdx.x;
    if (i < count) y[i] = gelu(x[i]);
}

extern "C" int run(const float* x, float* y, int64_t count, cudaStream_t stream) {
    const int64_t fours = count / 4;
    if (fours)
        gelu_kernel<<<(fours + 1023) / 1024, 256, 0, stream>>>(
            reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y), fours);
    if (count % 4) gelu_rest<<<1, 4, 0, stream>>>(x, y, 4 * fours, count);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        status = lib.run(x.data_ptr(), y.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return y
