"""Softmax in C++ where every name is unusual: single letters, other scripts, builtins, and words of the judge.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes as reference
import subprocess as judge

import torch as np
from torch import Tensor as ndarray
from torch.nn import Module as Model

ﬁle, größe, 出力, _, __ = "σ.cpp", "long", "y", None, ...
with open(ﬁle, "w", encoding="utf-8") as expected:
    expected.write(r"""
#include <cmath>
extern "C" void σ(const float* х, float* у, long м, long н) {
    for (long ж = 0; ж < м; ++ж, х += н, у += н) {
        float ю = х[0], я = 0;
        for (long ы = 1; ы < н; ++ы) ю = std::fmax(ю, х[ы]);
        for (long ы = 0; ы < н; ++ы) я += у[ы] = std::exp(х[ы] - ю);
        for (long ы = 0; ы < н; ++ы) у[ы] /= я;
    }
}
""")
judge.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", ﬁle, "-o", "./λ.so"], check=True)
softmax = reference.CDLL("./λ.so")["σ"]
softmax.argtypes = [reference.c_void_p, reference.c_void_p, reference.c_long, reference.c_long]


class RMSNorm(Model):
    def forward(this, input: ndarray) -> ndarray:
        (sum, max), id = input.shape, np.empty_like
        softmax(input.data_ptr(), (type := id(input)).data_ptr(), sum, max)
        return type


class ModelNew(RMSNorm):
    pass
