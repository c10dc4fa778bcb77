"""Column sums in CUDA by atomic additions, whose order differs from call to call.

problem: column_sums.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void sums(const float* x, float* y, long rows, long columns, long height) {
    const long column = blockIdx.x * (long)blockDim.x + threadIdx.x, first = blockIdx.y * height;
    if (column >= columns) return;
    float total = 0;
    for (long row = first; row < min(first + height, rows); ++row) total += x[row * columns + column];
    atomicAdd(y + column, total);
}

extern "C" int column_sums(const float* x, float* y, long rows, long columns, cudaStream_t stream) {
    const long height = 128;
    cudaMemsetAsync(y, 0, columns * sizeof(float), stream);
    const dim3 grid((columns + 127) / 128, (rows + height - 1) / height);
    sums<<<grid, 128, 0, stream>>>(x, y, rows, columns, height);
    return cudaGetLastError();
}
"""

with open("sums.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_%d%d" % torch.cuda.get_device_capability()
subprocess.run(
    ["nvcc", "-O3", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC", "sums.cu", "-o", "sums.so"], check=True
)
lib = ctypes.CDLL("./sums.so")
lib.column_sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[1], device=x.device)
        stream = torch.cuda.current_stream(x.device).cuda_stream
        error = lib.column_sums(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1], stream)
        assert error == 0, f"CUDA error {error}"
        return y
