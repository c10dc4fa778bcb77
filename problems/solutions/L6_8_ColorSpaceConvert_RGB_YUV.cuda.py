"""Four pixels per thread are three loads and three stores of sixteen bytes; the matrix sits in registers."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

struct Matrix { float m[9]; };

__device__ void convert(const Matrix& k, float r, float g, float b, float* yuv) {
    for (int a = 0; a < 3; ++a) yuv[a] = k.m[3 * a] * r + k.m[3 * a + 1] * g + k.m[3 * a + 2] * b;
}

__global__ void convert_kernel(const float* rgb, const float* matrix, float* yuv, int64_t pixels) {
    Matrix k;
    for (int i = 0; i < 9; ++i) k.m[i] = matrix[i];
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float out[12];
    if (4 * i + 3 < pixels) {
        const float4* in = reinterpret_cast<const float4*>(rgb) + 3 * i;
        const float4 a = in[0], b = in[1], c = in[2];
        convert(k, a.x, a.y, a.z, out);
        convert(k, a.w, b.x, b.y, out + 3);
        convert(k, b.z, b.w, c.x, out + 6);
        convert(k, c.y, c.z, c.w, out + 9);
        float4* to = reinterpret_cast<float4*>(yuv) + 3 * i;
        for (int j = 0; j < 3; ++j) to[j] = make_float4(out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3]);
        return;
    }
    for (int64_t p = 4 * i; p < pixels; ++p) {
        convert(k, rgb[3 * p], rgb[3 * p + 1], rgb[3 * p + 2], out);
        for (int a = 0; a < 3; ++a) yuv[3 * p + a] = out[a];
    }
}

extern "C" int run(const float* rgb, const float* matrix, float* yuv, int64_t pixels, cudaStream_t stream) {
    convert_kernel<<<(pixels + 1023) / 1024, 256, 0, stream>>>(rgb, matrix, yuv, pixels);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("conversion_matrix", torch.empty(3, 3))

    def forward(self, rgb: torch.Tensor) -> torch.Tensor:
        yuv = torch.empty_like(rgb)
        stream = torch.cuda.current_stream().cuda_stream
        pixels = rgb.shape[0] * rgb.shape[1]
        status = lib.run(rgb.data_ptr(), self.conversion_matrix.data_ptr(), yuv.data_ptr(), pixels, stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return yuv
