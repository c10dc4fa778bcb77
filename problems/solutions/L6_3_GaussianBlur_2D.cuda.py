"""Rows and columns are blurred in turn inside a tile of shared memory: one read and one write per pixel."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

const int WIDE = 64, HIGH = 32, MOST = 31;

// R is the radius, or -1 where only the kernel's argument tells it
template <int R>
__global__ void __launch_bounds__(256) blur_kernel(
    const float* image, const float* kernel, float* out, int height, int width, int given) {
    const int radius = R >= 0 ? R : given, size = 2 * radius + 1;
    extern __shared__ float memory[];
    __shared__ float g[MOST];
    const int columns = WIDE + 2 * radius, rows = HIGH + 2 * radius;
    float* tile = memory;                    // [rows][columns]
    float* across = memory + rows * columns;  // [rows][WIDE]
    const int top = blockIdx.y * HIGH - radius, left = blockIdx.x * WIDE - radius;
    if (threadIdx.x < size) {  // a row of the outer product sums to that row's factor
        float sum = 0;
        for (int c = 0; c < size; ++c) sum += kernel[threadIdx.x * size + c];
        g[threadIdx.x] = sum;
    }
    for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        const int row = top + i / columns, column = left + i % columns;
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        tile[i] = inside ? image[int64_t(row) * width + column] : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * WIDE; i += blockDim.x) {
        const float* from = tile + i / WIDE * columns + i % WIDE;
        float sum = 0;
        #pragma unroll
        for (int c = 0; c < size; ++c) sum += g[c] * from[c];
        across[i] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HIGH * WIDE; i += blockDim.x) {
        const int row = top + radius + i / WIDE, column = left + radius + i % WIDE;
        float sum = 0;
        #pragma unroll
        for (int r = 0; r < size; ++r) sum += g[r] * across[i + r * WIDE];
        if (row < height && column < width) out[int64_t(row) * width + column] = sum;
    }
}

extern "C" int run(const float* image, const float* kernel, float* out, int height, int width, int size,
                   cudaStream_t stream) {
    const dim3 blocks((width + WIDE - 1) / WIDE, (height + HIGH - 1) / HIGH);
    const int radius = size / 2;
    const size_t shared = sizeof(float) * (HIGH + 2 * radius) * (2 * WIDE + 2 * radius);
    auto chosen = radius == 7 ? blur_kernel<7> : radius == 5 ? blur_kernel<5> : blur_kernel<-1>;
    cudaFuncSetAttribute(chosen, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared));
    chosen<<<blocks, 256, shared, stream>>>(image, kernel, out, height, width, radius);
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
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_void_p,
]


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int = 15, sigma: float = 3.0):
        super().__init__()
        if kernel_size > 31:
            raise ValueError("built for kernels of up to 31 pixels")
        self.register_buffer("kernel", torch.empty(1, 1, kernel_size, kernel_size))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(image)
        status = lib.run(
            image.data_ptr(), self.kernel.data_ptr(), out.data_ptr(), image.shape[0], image.shape[1],
            self.kernel.shape[-1], torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
