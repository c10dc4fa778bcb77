"""Both passes in one: what the first leaves of a pixel is worked out wherever the second needs it.

Edges lie at least four pixels apart, so that no pixel is near two of them and the pixels p1 and q1 never change.
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

struct Edges { int height, width, size, alpha, beta; };

// the pixel at `offset` from an edge (-1: p0, 0: q0), given the four across it
__device__ int smoothed(int p1, int p0, int q0, int q1, int offset, const Edges& e) {
    const bool weak = abs(p0 - q0) < e.alpha && abs(p1 - p0) < e.beta && abs(q1 - q0) < e.beta;
    if (offset < 0) return weak ? (2 * p1 + p0 + q0 + 2) >> 2 : p0;
    return weak ? (2 * q1 + q0 + p0 + 2) >> 2 : q0;
}

// the edge that a place lies next to, or 0
__device__ int edge_near(int place, int side, int size) {
    const int rest = place % size, edge = rest == 0 ? place : rest == size - 1 ? place + 1 : 0;
    return edge > 0 && edge < side - 1 ? edge : 0;
}

// a pixel after the first pass, over the vertical edges
__device__ int after_first(const uint8_t* frame, int row, int column, int edge, const Edges& e) {
    const uint8_t* line = frame + int64_t(row) * e.width;
    if (!edge) return line[column];
    return smoothed(line[edge - 2], line[edge - 1], line[edge], line[edge + 1], column - edge, e);
}

__global__ void deblock_kernel(const uint8_t* frame, uint8_t* out, Edges e) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= e.height || column >= e.width) return;
    const int across = edge_near(column, e.width, e.size), down = edge_near(row, e.height, e.size);
    int value;
    if (!down) {
        value = after_first(frame, row, column, across, e);
    } else {
        int near[4];
        for (int k = 0; k < 4; ++k) near[k] = after_first(frame, down - 2 + k, column, across, e);
        value = smoothed(near[0], near[1], near[2], near[3], row - down, e);
    }
    out[int64_t(row) * e.width + column] = uint8_t(value);
}

extern "C" int run(const uint8_t* frame, uint8_t* out, int height, int width, int size, int alpha, int beta,
                   cudaStream_t stream) {
    const dim3 threads(128, 4), blocks((width + 127) / 128, (height + 3) / 4);
    deblock_kernel<<<blocks, threads, 0, stream>>>(frame, out, Edges{height, width, size, alpha, beta});
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
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_void_p,
]


class ModelNew(nn.Module):
    def __init__(self, block_size: int = 8, alpha: int = 40, beta: int = 8):
        super().__init__()
        self.parameters_of_edges = (block_size, alpha, beta)

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(frame)
        stream = torch.cuda.current_stream().cuda_stream
        height, width = frame.shape
        status = lib.run(frame.data_ptr(), out.data_ptr(), height, width, *self.parameters_of_edges, stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
