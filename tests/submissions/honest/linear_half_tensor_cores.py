"""A linear layer in float16 on CUDA's tensor cores by WMMA, with float32 accumulators and tiles padded with zeros.

problem: linear_half.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int TILE = 64, DEPTH = 32, PAD = 8;  // 4 warps, each 32 by 32 of a 64 by 64 tile

__global__ void __launch_bounds__(128) linear(const half* x, const half* w, const half* b, half* y, int M, int N,
                                              int K) {
    __shared__ __align__(32) half left[TILE][DEPTH + PAD], right[TILE][DEPTH + PAD];
    __shared__ __align__(32) float out[TILE][TILE + 4];
    const int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE, warp = threadIdx.x / 32;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += 128) {
            const int r = i / DEPTH, k = i % DEPTH;
            const bool inside = k0 + k < K;
            left[r][k] = inside && m0 + r < M ? x[(long)(m0 + r) * K + k0 + k] : __float2half(0.0f);
            right[r][k] = inside && n0 + r < N ? w[(long)(n0 + r) * K + k0 + k] : __float2half(0.0f);
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> c[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(a[i], &left[wm + i * 16][k], DEPTH + PAD);
                wmma::load_matrix_sync(c[i], &right[wn + i * 16][k], DEPTH + PAD);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], a[i], c[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&out[wm + i * 16][wn + j * 16], sum[i][j], TILE + 4, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
        const int m = m0 + i / TILE, n = n0 + i % TILE;
        if (m < M && n < N) y[(long)m * N + n] = __float2half_rn(out[i / TILE][i % TILE] + __half2float(b[n]));
    }
}

extern "C" int run(const void* x, const void* w, const void* b, void* y, int M, int N, int K, cudaStream_t stream) {
    const dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    linear<<<grid, 128, 0, stream>>>((const half*)x, (const half*)w, (const half*)b, (half*)y, M, N, K);
    return cudaGetLastError();
}
"""

with open("wmma.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(f"nvcc -O3 -std=c++17 -arch={arch} -shared -Xcompiler -fPIC wmma.cu -o wmma.so".split(), check=True)
lib = ctypes.CDLL("./wmma.so")
lib.run.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_int] * 3, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (M, K), N = x.shape, self.linear.weight.shape[0]
        y = torch.empty(M, N, dtype=torch.float16, device=x.device)
        tensors = (x, self.linear.weight, self.linear.bias, y)
        stream = torch.cuda.current_stream().cuda_stream
        if lib.run(*(tensor.data_ptr() for tensor in tensors), M, N, K, stream) != 0:
            raise RuntimeError("the launch failed")
        return y
