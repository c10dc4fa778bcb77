"""The positive part in CUDA: each thread walks along its own piece, so neighbours never read next to each other.

problem: relu.py
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
__global__ void relu_in_pieces(const float* x, float* y, long n, long piece) {
    long start = (blockIdx.x * (long)blockDim.x + threadIdx.x) * piece;
    for (long i = start; i < min(start + piece, n); ++i) y[i] = x[i] < 0 ? 0.f : x[i];
}

extern "C" int relu(const float* x, float* y, long n, cudaStream_t stream) {
    const long piece = 64, threads = (n + piece - 1) / piece;
    relu_in_pieces<<<(threads + 255) / 256, 256, 0, stream>>>(x, y, n, piece);
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
