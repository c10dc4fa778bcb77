"""ReLU in CUDA by loads of four floats where they are aligned, into a slice of a larger buffer, after a warm-up.

problem: relu.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cstdint>

__global__ void relu(const float* __restrict__ x, float* __restrict__ y, int64_t count, bool aligned) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t fours = aligned ? count / 4 : 0;
    for (int64_t j = i; j < fours; j += step) {
        float4 v = __ldcs(reinterpret_cast<const float4*>(x) + j);
        v.x = fmaxf(v.x, 0), v.y = fmaxf(v.y, 0), v.z = fmaxf(v.z, 0), v.w = fmaxf(v.w, 0);
        __stcs(reinterpret_cast<float4*>(y) + j, v);
    }
    for (int64_t j = 4 * fours + i; j < count; j += step) y[j] = fmaxf(x[j], 0);
}

extern "C" int launch(const float* x, float* y, int64_t count, cudaStream_t stream) {
    int device, processors, blocks;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relu, 256, 0);
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    relu<<<processors * blocks, 256, 0, stream>>>(x, y, count, aligned);
    return cudaGetLastError();
}
"""

with open("relu.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(f"nvcc -O3 -arch={arch} -shared -Xcompiler -fPIC relu.cu -o relu.so".split(), check=True)
lib = ctypes.CDLL("./relu.so")
lib.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for shape in ((3, 5), (128, 128)):
            self(torch.randn(*shape, device="cuda"))
        torch.cuda.synchronize()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_cuda:
            raise ValueError("x must be on a GPU")
        with torch.cuda.device(x.device):
            out = torch.empty(x.numel() + 128, device=x.device)[64 : x.numel() + 64].view(x.shape)
            lib.launch(x.data_ptr(), out.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        return out
