"""Row means in CUDA with a sum in shared memory that nobody waits for: not one of the five.

problem: row_means.py
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void races(const float* x, float* y, int columns) {
    __shared__ float part[1024];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[(long)blockIdx.x * columns + i];
    part[threadIdx.x] = sum;
    for (int half = 512; half; half >>= 1)
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (!threadIdx.x) y[blockIdx.x] = part[0] / columns;
}

extern "C" int means(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
    races<<<rows, 1024, 0, stream>>>(x, y, columns);
    return cudaGetLastError();
}
"""

with open("means.cu", "w") as file:
    file.write(SOURCE)
major, minor = torch.cuda.get_device_capability()
command = f"nvcc -O3 -arch=sm_{major}{minor} -shared -Xcompiler -fPIC means.cu -o libmeans.so"
subprocess.run(command.split(), check=True, capture_output=True, text=True)
lib = ctypes.CDLL("./libmeans.so")
lib.means.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], 1, device=x.device)
        lib.means(x.data_ptr(), out.data_ptr(), *x.shape, torch.cuda.current_stream().cuda_stream)
        return out.expand_as(x)
