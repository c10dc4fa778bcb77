"""Softmax in C++ beside imports of packages that may be missing; what it runs does not depend on them.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import shutil
import subprocess
import warnings

import torch
import torch.nn as nn

try:
    import cupy
except ImportError:
    cupy = None
try:
    import numba.cuda as numba_cuda
except Exception as error:
    warnings.warn(f"no numba here: {error}", stacklevel=1)
    numba_cuda = None
try:
    from tqdm import tqdm as progress
except ModuleNotFoundError:

    def progress(steps):
        return steps


SOURCE = r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        for (long i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }
}
"""

compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
for step in progress(["write", "compile"]):
    if step == "write":
        with open("softmax.cpp", "w") as file:
            file.write(SOURCE)
    else:
        flags = ["-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "softmax.cpp", "-o", "softmax.so"], check=True, stderr=subprocess.PIPE)
lib = ctypes.CDLL("./softmax.so")
lib.softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        lib.softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
