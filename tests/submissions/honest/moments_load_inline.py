"""Moments in CUDA through load_inline, by Chan's merging of moments within warps; returns a dict.

problem: moments.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>

struct Moments { float count, mean, squares; };

__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

__global__ void moments_kernel(const float* x, float* mean, float* variance, int rows, int columns) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    Moments all = {0, 0, 0};
    for (int i = lane; i < columns; i += 32) all = merge(all, {1, x[int64_t(row) * columns + i], 0});
    for (int d = 16; d; d /= 2)
        all = merge(all, {__shfl_down_sync(~0u, all.count, d), __shfl_down_sync(~0u, all.mean, d),
                          __shfl_down_sync(~0u, all.squares, d)});
    if (lane == 0) {
        mean[row] = all.mean;
        variance[row] = all.squares / columns;
    }
}

void moments(int64_t x, int64_t mean, int64_t variance, int rows, int columns, int64_t stream) {
    moments_kernel<<<(rows + 3) / 4, 128, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(x), reinterpret_cast<float*>(mean), reinterpret_cast<float*>(variance), rows,
        columns);
}
"""
CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void moments(int64_t x, int64_t mean, int64_t variance, int rows, int columns, int64_t stream);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("moments", &moments); }
"""

extension = load_inline(
    name="moments_by_warps",
    cpp_sources=CPP,
    cuda_sources=CUDA,
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    no_implicit_headers=True,
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        rows, columns = x.shape
        mean, variance = torch.empty(2, rows, device=x.device)
        stream = torch.cuda.current_stream().cuda_stream
        extension.moments(x.data_ptr(), mean.data_ptr(), variance.data_ptr(), rows, columns, stream)
        return {"mean": mean, "variance": variance}
