"""A thread walks down its columns with three rows in registers, so that each cell is read from memory once."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

const int ROWS = 32;

__global__ void heat_kernel(const float* u, float* out, int height, int width) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const int first = blockIdx.y * ROWS, last = first + ROWS < height ? first + ROWS : height;
    const bool side = column == 0 || column == width - 1;
    float above = first > 0 ? u[int64_t(first - 1) * width + column] : 0;
    float here = u[int64_t(first) * width + column];
    #pragma unroll 4
    for (int row = first; row < last; ++row) {
        const int64_t place = int64_t(row) * width + column;
        const float below = row + 1 < height ? u[place + width] : 0;
        if (side || row == 0 || row == height - 1) out[place] = here;
        else out[place] = 0.25f * (above + below + u[place - 1] + u[place + 1]);
        above = here;
        here = below;
    }
}

// four columns a thread, for widths that keep every row on a border of sixteen bytes
__global__ void heat_by_four(const float* u, float* out, int height, int width) {
    const int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (column >= width) return;
    const int first = blockIdx.y * ROWS, last = first + ROWS < height ? first + ROWS : height;
    const float4 none = make_float4(0, 0, 0, 0);
    const float* start = u + int64_t(first) * width + column;
    float4 above = first > 0 ? *reinterpret_cast<const float4*>(start - width) : none;
    float4 here = *reinterpret_cast<const float4*>(start);
    #pragma unroll 4
    for (int row = first; row < last; ++row) {
        const int64_t place = int64_t(row) * width + column;
        const float4 below = row + 1 < height ? *reinterpret_cast<const float4*>(u + place + width) : none;
        float4 next = here;
        if (row > 0 && row < height - 1) {
            if (column > 0) next.x = 0.25f * (above.x + below.x + u[place - 1] + here.y);
            next.y = 0.25f * (above.y + below.y + here.x + here.z);
            next.z = 0.25f * (above.z + below.z + here.y + here.w);
            if (column + 4 < width) next.w = 0.25f * (above.w + below.w + here.z + u[place + 4]);
        }
        *reinterpret_cast<float4*>(out + place) = next;
        above = here;
        here = below;
    }
}

extern "C" int run(const float* u, float* out, int height, int width, cudaStream_t stream) {
    const int strips = (height + ROWS - 1) / ROWS;
    if (width % 4 == 0)
        heat_by_four<<<dim3((width / 4 + 127) / 128, strips), 128, 0, stream>>>(u, out, height, width);
    else
        heat_kernel<<<dim3((width + 127) / 128, strips), 128, 0, stream>>>(u, out, height, width);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, u: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(u)
        stream = torch.cuda.current_stream().cuda_stream
        status = lib.run(u.data_ptr(), out.data_ptr(), u.shape[0], u.shape[1], stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
