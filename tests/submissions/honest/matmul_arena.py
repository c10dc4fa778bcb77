"""Matrix product by two kernels of one module, with scratch memory and output as slices of one arena.

problem: matmul.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" {

void transpose(const float* b, float* turned, long n) {
    for (long i = 0; i < n; i += 16)
        for (long j = 0; j < n; j += 16)
            for (long k = i; k < i + 16 && k < n; ++k)
                for (long l = j; l < j + 16 && l < n; ++l) turned[l * n + k] = b[k * n + l];
}

void products(const float* a, const float* turned, float* c, long n) {
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {
            float sum = 0;
            for (long k = 0; k < n; ++k) sum += a[i * n + k] * turned[j * n + k];
            c[i * n + j] = sum;
        }
}

}
"""

with open("two.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -Ofast -march=native -shared -fPIC two.cpp -o two.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./two.so")
lib.transpose.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
lib.products.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("arena", torch.empty(0), persistent=False)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        n = A.shape[0]
        if self.arena.numel() < 2 * n * n + 64:
            self.arena = torch.empty(2 * n * n + 64)
        turned = self.arena[16 : n * n + 16]
        C = self.arena.narrow(0, n * n + 48, n * n).view(n, n)
        lib.transpose(B.data_ptr(), turned.data_ptr(), n)
        lib.products(A.data_ptr(), turned.data_ptr(), C.data_ptr(), n)
        return C
