"""Row norms in CUDA, halves of the rows on two streams, which wait for the current one and which it waits for.

problem: row_norms.py
device: cuda
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void norms(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ double part[8];
    const float* row = x + (long)blockIdx.x * columns;
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * row[i];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i) sum += part[i];
        y[blockIdx.x] = (float)sqrt(sum);
    }
}

extern "C" int launch(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
    if (rows) norms<<<rows, 256, 0, stream>>>(x, y, columns);
    return (int)cudaGetLastError();
}
"""

with open("norms.cu", "w") as file:
    file.write(SOURCE)
arch = "".join(map(str, torch.cuda.get_device_capability()))
subprocess.run(f"nvcc -O3 -arch=sm_{arch} -shared -Xcompiler -fPIC -o norms.so norms.cu", shell=True, check=True)
lib = ctypes.CDLL("./norms.so")
lib.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.done = [torch.cuda.Event() for _ in self.streams]
        self.begun = torch.cuda.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.new_empty(x.shape[0])
        main = torch.cuda.current_stream()
        self.begun.record(main)
        middle = x.shape[0] // 2
        pieces = [(x[:middle], y[:middle]), (x[middle:], y[middle:])]
        for (rows, norms), stream, done in zip(pieces, self.streams, self.done, strict=True):
            stream.wait_event(self.begun)
            lib.launch(rows.data_ptr(), norms.data_ptr(), len(norms), x.shape[1], stream.cuda_stream)
            y.record_stream(stream)
            done.record(stream)
        for done in self.done:
            main.wait_event(done)
        return y
