"""Histogram in CUDA with bins in shared memory for every block, added up by atomics; integer output.

problem: L6_2_Histogram_256
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
typedef unsigned long long Count;

__global__ void histogram(const long long* data, long long count, Count* bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const long long v = data[i];
        atomicAdd(own + (v < 0 ? 0 : v > 255 ? 255 : v), 1u);
    }
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(bins + threadIdx.x, (Count)own[threadIdx.x]);
}

extern "C" int run(const long long* data, long long count, Count* bins, cudaStream_t stream) {
    histogram<<<1024, 256, 0, stream>>>(data, count, bins);
    return cudaGetLastError();
}
"""

with open("histogram.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(f"nvcc -O3 -arch={arch} -shared -Xcompiler -fPIC histogram.cu -o histogram.so".split(), check=True)
lib = ctypes.CDLL("./histogram.so")
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, data: torch.Tensor) -> torch.Tensor:
        bins = torch.zeros(256, dtype=torch.int64, device=data.device)
        lib.run(data.data_ptr(), data.numel(), bins.data_ptr(), torch.cuda.current_stream().cuda_stream)
        return bins
