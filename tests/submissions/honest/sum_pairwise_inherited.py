"""Sum of a vector, pairwise in blocks; forward is inherited from a base class and called with two arguments of super.

problem: L9_2_Reduction_Sum
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
from abc import ABC, abstractmethod

import torch
import torch.nn as nn

SOURCE = """
float pairwise(const float* x, long n) {
    if (n <= 64) { float s = 0; for (long i = 0; i < n; ++i) s += x[i]; return s; }
    return pairwise(x, n / 2) + pairwise(x + n / 2, n - n / 2);
}
void sum_into(const float* x, long n, float* y) { *y = pairwise(x, n); }
"""


class CompiledC(ABC):
    def __init__(self, source):
        with open("sum.c", "w") as f:
            f.write(source)
        subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", "sum.c", "-o", "sum.so"], check=True)
        self.lib = ctypes.CDLL("./sum.so")

    @abstractmethod
    def __call__(self, *args): ...


class SumInto(CompiledC):
    def __init__(self):
        super(SumInto, self).__init__(SOURCE)

    def __call__(self, x, out):
        self.lib.sum_into(ctypes.c_void_p(x.data_ptr()), ctypes.c_long(x.numel()), ctypes.c_void_p(out.data_ptr()))
        return out


class Reduction(nn.Module):
    def __init__(self):
        super(Reduction, self).__init__()
        self.op = SumInto()

    def forward(self, x):
        return self.op(x, torch.zeros((), dtype=x.dtype, device=x.device))


class ModelNew(Reduction):
    def forward(self, input):
        return super(ModelNew, self).forward(input.contiguous())
