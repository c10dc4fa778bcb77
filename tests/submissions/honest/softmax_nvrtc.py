"""Softmax in CUDA compiled at the first call by NVRTC through torch, the online way, a warp to a row.

problem: softmax.py
device: cuda
rules: kernel
expect: correct
"""

import functools

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" __global__ void softmax(const float* x, float* y, int rows, int columns) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* in = x + (long long)row * columns;
    float* out = y + (long long)row * columns;
    float most = -3.4e38f, sum = 0;
    for (int i = lane; i < columns; i += 32) {
        const float next = fmaxf(most, in[i]);
        sum = sum * expf(most - next) + expf(in[i] - next);
        most = next;
    }
    for (int d = 16; d; d /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, most, d), next = fmaxf(most, other);
        const float its = __shfl_xor_sync(0xffffffffu, sum, d);
        sum = sum * expf(most - next) + its * expf(other - next);
        most = next;
    }
    for (int i = lane; i < columns; i += 32) out[i] = expf(in[i] - most) / sum;
}
"""


@functools.lru_cache(maxsize=None)
def kernel():
    return torch.cuda._compile_kernel(SOURCE, "softmax")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        out = torch.empty_like(x)
        kernel()(grid=((rows + 3) // 4, 1, 1), block=(128, 1, 1), args=[x, out, rows, columns])
        return out
