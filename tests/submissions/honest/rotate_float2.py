"""Rotation in CUDA on pairs of floats, a block to a row; complex in and out.

problem: rotate.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void turn(const float2* __restrict__ x, const float* __restrict__ angle, float2* __restrict__ y,
                     int columns) {
    float s, c;
    sincosf(angle[blockIdx.x], &s, &c);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float2 z = x[(long)blockIdx.x * columns + i];
        y[(long)blockIdx.x * columns + i] = make_float2(z.x * c - z.y * s, z.x * s + z.y * c);
    }
}

extern "C" int rotate(const float2* x, const float* angle, float2* y, int rows, int columns, cudaStream_t stream) {
    turn<<<rows, 256, 0, stream>>>(x, angle, y, columns);
    return cudaGetLastError();
}
"""

with open("rotate.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(f"nvcc -O3 -arch={arch} -shared -Xcompiler -fPIC rotate.cu -o rotate.so".split(), check=True)
lib = ctypes.CDLL("./rotate.so")
lib.rotate.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 2 + [ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        lib.rotate(x.data_ptr(), angle.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], stream)
        return y
