"""Softmax in CUDA without any torch header, built by nvcc and called through ctypes on torch's stream.

problem: L1_23_Softmax
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void softmax_kernel(const float* x, float* y, int columns) {
    __shared__ float part[32];
    const float* in = x + (long)blockIdx.x * columns;
    float* out = y + (long)blockIdx.x * columns;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, in[i]);
    for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (!lane) part[warp] = most;
    __syncthreads();
    most = part[0];
    for (int i = 1; i < blockDim.x / 32; ++i) most = fmaxf(most, part[i]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(in[i] - most);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (!lane) part[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(in[i] - most) / sum;
}

extern "C" int softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
    softmax_kernel<<<rows, 512, 0, stream>>>(x, y, columns);
    return cudaGetLastError();
}
"""

with open("softmax.cu", "w") as file:
    file.write(SOURCE)
major, minor = torch.cuda.get_device_capability()
command = f"nvcc -O3 -arch=sm_{major}{minor} -shared -Xcompiler -fPIC softmax.cu -o libsoftmax.so"
subprocess.run(command.split(), check=True, capture_output=True, text=True)
lib = ctypes.CDLL("./libsoftmax.so")
lib.softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        lib.softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1], stream)
        return out
