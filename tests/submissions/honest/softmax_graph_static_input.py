"""Softmax in CUDA as a graph of its own kernel, captured for each shape; every input is copied in, the output stays.

problem: softmax.py
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
    __shared__ float shared[256];
    x += (long)blockIdx.x * columns;
    y += (long)blockIdx.x * columns;
    const int t = threadIdx.x;
    float most = -INFINITY;
    for (int i = t; i < columns; i += 256) most = fmaxf(most, x[i]);
    shared[t] = most;
    for (int reach = 128; reach; reach /= 2) {
        __syncthreads();
        if (t < reach) shared[t] = fmaxf(shared[t], shared[t + reach]);
    }
    __syncthreads();
    most = shared[0];
    __syncthreads();
    float sum = 0;
    for (int i = t; i < columns; i += 256) sum += expf(x[i] - most);
    shared[t] = sum;
    for (int reach = 128; reach; reach /= 2) {
        __syncthreads();
        if (t < reach) shared[t] += shared[t + reach];
    }
    __syncthreads();
    sum = shared[0];
    for (int i = t; i < columns; i += 256) y[i] = expf(x[i] - most) / sum;
}

extern "C" int softmax(const float* x, float* y, int rows, int columns, void* stream) {
    softmax_kernel<<<rows, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, columns);
    return cudaGetLastError();
}
"""

with open("graphed.cu", "w") as file:
    file.write(SOURCE)
arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
command = f"nvcc -O3 -arch={arch} -shared -Xcompiler -fPIC graphed.cu -o graphed.so"
subprocess.run(command.split(), check=True, capture_output=True)
lib = ctypes.CDLL("./graphed.so")
lib.softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


class Captured:
    def __init__(self, x: torch.Tensor):
        self.x, self.y = x.clone(), torch.empty_like(x)
        self.graph = torch.cuda.CUDAGraph()
        self.launch()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.launch()

    def launch(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        code = lib.softmax(self.x.data_ptr(), self.y.data_ptr(), *self.x.shape, stream)
        if code:
            raise RuntimeError(f"CUDA error {code}")

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.captured = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.captured:
            self.captured[x.shape] = Captured(x)
        return self.captured[x.shape](x)
