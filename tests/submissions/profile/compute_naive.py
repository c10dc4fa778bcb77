"""A matrix product in CUDA with one thread for each element of the result, and nothing kept near.

problem: matmul.py
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void one_each(const float* a, const float* b, float* c, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[(long)row * n + k] * b[(long)k * n + column];
    c[(long)row * n + column] = sum;
}

extern "C" int multiply(const float* a, const float* b, float* c, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    one_each<<<grid, block, 0, stream>>>(a, b, c, n);
    return cudaGetLastError();
}
"""

with open("multiply.cu", "w") as file:
    file.write(SOURCE)
major, minor = torch.cuda.get_device_capability()
command = f"nvcc -O3 -arch=sm_{major}{minor} -shared -Xcompiler -fPIC multiply.cu -o libmultiply.so"
subprocess.run(command.split(), check=True, capture_output=True, text=True)
lib = ctypes.CDLL("./libmultiply.so")
lib.multiply.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(A)
        lib.multiply(A.data_ptr(), B.data_ptr(), out.data_ptr(), A.shape[0], torch.cuda.current_stream().cuda_stream)
        return out
