"""The positive part in CUDA with more values at hand than there are registers for.

problem: relu.py
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void __launch_bounds__(1024, 2) relu_that_spills(const float* x, float* y, long n) {
    float kept[96];
    long start = (long)blockIdx.x * blockDim.x * 96 + threadIdx.x;
    #pragma unroll
    for (int i = 0; i < 96; ++i) kept[i] = start + i * 1024L < n ? x[start + i * 1024L] : 0.f;
    __syncthreads();
    #pragma unroll
    for (int i = 95; i >= 0; --i) if (start + i * 1024L < n) y[start + i * 1024L] = kept[i] < 0 ? 0.f : kept[i];
}

extern "C" int relu(const float* x, float* y, long n, cudaStream_t stream) {
    relu_that_spills<<<(n + 96 * 1024 - 1) / (96 * 1024), 1024, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
"""

with open("relu.cu", "w") as file:
    file.write(SOURCE)
major, minor = torch.cuda.get_device_capability()
command = f"nvcc -O3 -arch=sm_{major}{minor} -shared -Xcompiler -fPIC relu.cu -o librelu.so"
subprocess.run(command.split(), check=True, capture_output=True, text=True)
lib = ctypes.CDLL("./librelu.so")
lib.relu.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        lib.relu(x.data_ptr(), out.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)
        return out
