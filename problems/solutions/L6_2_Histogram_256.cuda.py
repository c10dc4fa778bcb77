"""Each lane counts in bins of its own in shared memory, so that equal neighbours never wait for each other."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

const int BINS = 256, LANES = 32;

__device__ int bin_of(long long value) { return value < 0 ? 0 : value > 255 ? 255 : int(value); }

__global__ void histogram_kernel(const long long* data, unsigned long long* histogram, int64_t count) {
    __shared__ unsigned bins[BINS * LANES];  // [bin][lane]: a lane's bins all lie in a bank of its own
    for (int i = threadIdx.x; i < BINS * LANES; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    unsigned* mine = bins + threadIdx.x % LANES;
    const longlong2* pairs = reinterpret_cast<const longlong2*>(data);
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    #pragma unroll 4
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count / 2; i += stride) {
        const longlong2 pair = __ldcs(pairs + i);
        atomicAdd(mine + bin_of(pair.x) * LANES, 1u);
        atomicAdd(mine + bin_of(pair.y) * LANES, 1u);
    }
    if (count % 2 && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(mine + bin_of(data[count - 1]) * LANES, 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        unsigned long long total = 0;
        for (int k = 0; k < LANES; ++k) total += bins[bin * LANES + (bin + k) % LANES];
        if (total) atomicAdd(histogram + bin, total);
    }
}

extern "C" int run(const long long* data, unsigned long long* histogram, int64_t count, int blocks,
                   cudaStream_t stream) {
    cudaMemsetAsync(histogram, 0, BINS * sizeof(unsigned long long), stream);
    histogram_kernel<<<blocks, 512, 0, stream>>>(data, histogram, count);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, data: torch.Tensor) -> torch.Tensor:
        histogram = data.new_empty(256)
        processors = torch.cuda.get_device_properties(data.device).multi_processor_count
        blocks = min(4 * processors, data.numel() // 1024 + 1)
        stream = torch.cuda.current_stream().cuda_stream
        status = lib.run(data.data_ptr(), histogram.data_ptr(), data.numel(), blocks, stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return histogram
