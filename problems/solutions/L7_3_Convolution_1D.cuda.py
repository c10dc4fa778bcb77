"""Eight neighbouring results per thread share a window of samples in registers: two reads for eight multiplications."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

const int EACH = 8, THREADS = 256, PIECE = EACH * THREADS;

// one word in nine is left free, so that threads eight samples apart meet no bank twice
__device__ int spread(int i) { return i + i / EACH; }

__global__ void conv_kernel(const float* signal, const float* kernel, float* out, int64_t length, int size,
                            int padded) {
    extern __shared__ float memory[];
    float* taps = memory;               // [padded], the kernel and zeros up to a multiple of eight
    float* samples = memory + padded;   // of this block's piece and size - 1 around it
    const int64_t first = int64_t(blockIdx.x) * PIECE;
    for (int i = threadIdx.x; i < padded; i += THREADS) taps[i] = i < size ? kernel[i] : 0;
    for (int i = threadIdx.x; i < PIECE + padded; i += THREADS) {
        const int64_t n = first + i - size / 2;
        samples[spread(i)] = n >= 0 && n < length ? signal[n] : 0;
    }
    __syncthreads();
    const float* mine = samples + (EACH + 1) * threadIdx.x;
    float sum[EACH] = {}, window[EACH];
    #pragma unroll
    for (int j = 0; j < EACH; ++j) window[j] = mine[j];
    for (int k = 0; k < padded; k += EACH) {
        #pragma unroll
        for (int u = 0; u < EACH; ++u) {
            const float tap = taps[k + u];
            #pragma unroll
            for (int j = 0; j < EACH; ++j) sum[j] += tap * window[(u + j) % EACH];
            window[u] = mine[spread(k + u + EACH)];
        }
    }
    const int64_t place = first + EACH * threadIdx.x;
    if (place + EACH <= length) {
        float4* to = reinterpret_cast<float4*>(out + place);
        to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
        to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
    } else {
        for (int j = 0; j < EACH; ++j)
            if (place + j < length) out[place + j] = sum[j];
    }
}

extern "C" int run(const float* signal, const float* kernel, float* out, int64_t length, int size,
                   cudaStream_t stream) {
    const int padded = (size + EACH - 1) / EACH * EACH, held = PIECE + padded;
    const size_t shared = sizeof(float) * (padded + held + held / EACH + 1);
    conv_kernel<<<(length + PIECE - 1) / PIECE, THREADS, shared, stream>>>(signal, kernel, out, length, size, padded);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int = 127):
        super().__init__()
        self.register_buffer("kernel", torch.empty(1, 1, kernel_size))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(signal)
        status = lib.run(
            signal.data_ptr(), self.kernel.data_ptr(), out.data_ptr(), signal.numel(), self.kernel.numel(),
            torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
