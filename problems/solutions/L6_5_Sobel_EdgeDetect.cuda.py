"""Both gradients, strength and angle in one pass; a thread walks down a column with two rows of sums in registers."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

const int ROWS = 16;

struct Row { float difference, sum; };  // right minus left, and left + 2 middle + right, of one row

__device__ Row row_at(const float* image, int row, int column, int height, int width) {
    if (row < 0 || row >= height) return {0, 0};
    const float* here = image + int64_t(row) * width + column;
    const float left = column > 0 ? here[-1] : 0, right = column + 1 < width ? here[1] : 0;
    return {right - left, left + 2 * here[0] + right};
}

__global__ void sobel_kernel(const float* image, float* magnitude, float* angle, int height, int width) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const int first = blockIdx.y * ROWS, last = first + ROWS < height ? first + ROWS : height;
    Row above = row_at(image, first - 1, column, height, width), here = row_at(image, first, column, height, width);
    #pragma unroll 4
    for (int row = first; row < last; ++row) {
        const Row below = row_at(image, row + 1, column, height, width);
        const float gx = above.difference + 2 * here.difference + below.difference, gy = below.sum - above.sum;
        const int64_t place = int64_t(row) * width + column;
        magnitude[place] = sqrtf(gx * gx + gy * gy);
        angle[place] = atan2f(gy, gx);
        above = here;
        here = below;
    }
}

extern "C" int run(const float* image, float* magnitude, float* angle, int height, int width, cudaStream_t stream) {
    const dim3 blocks((width + 127) / 128, (height + ROWS - 1) / ROWS);
    sobel_kernel<<<blocks, 128, 0, stream>>>(image, magnitude, angle, height, width);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        magnitude, angle = torch.empty_like(image), torch.empty_like(image)
        stream = torch.cuda.current_stream().cuda_stream
        height, width = image.shape
        status = lib.run(image.data_ptr(), magnitude.data_ptr(), angle.data_ptr(), height, width, stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return magnitude, angle
