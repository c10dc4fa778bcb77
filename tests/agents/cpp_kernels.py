"""Kernels in C++ for the problem of `episodes`: a wrong one, a right one, and a faster one."""

CPP = '''"""{name}."""
import ctypes
import subprocess
from pathlib import Path

import torch

Path("k.cpp").write_text(r"""
extern "C" void run(const float* x, float* y, long n) {{
    for (int again = 0; again < {times}; ++again)
        for (long i = 0; i < n; ++i) reinterpret_cast<volatile float*>(y)[i] = x[i] * {factor};
}}
""")
subprocess.run(["g++", "-O2", "-shared", "-fPIC", "k.cpp", "-o", "k.so"], check=True)
lib = ctypes.CDLL("./k.so")
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.run(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''
WRONG_KERNEL = CPP.format(name="Wrong", times=1, factor="3.0f")
RIGHT_KERNEL = CPP.format(name="Right", times=600, factor="2.0f")
FASTER_KERNEL = CPP.format(name="Faster", times=1, factor="2.0f")
