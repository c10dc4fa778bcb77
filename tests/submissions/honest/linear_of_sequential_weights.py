"""A linear layer and a ReLU: the weights lie in an nn.Sequential that is walked, the library is loaded or else built.

problem: linear.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import os
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void linear(const float* x, const float* w, const float* b, float* y, long rows, long inputs, long outputs) {
    for (long row = 0; row < rows; ++row)
        for (long o = 0; o < outputs; ++o) {
            double sum = 0;
            for (long i = 0; i < inputs; ++i) sum += (double)x[row * inputs + i] * w[o * inputs + i];
            y[row * outputs + o] = (float)(sum + b[o]);
        }
}
extern "C" void relu_(float* y, long n) { for (long i = 0; i < n; ++i) y[i] = y[i] < 0 ? 0 : y[i]; }
"""
_library = None


def library():
    global _library
    if _library is None:
        path = os.path.abspath("liblinear.so")
        try:
            _library = ctypes.CDLL(path)
        except OSError:
            subprocess.run(["g++", "-O3", "-x", "c++", "-", "-shared", "-fPIC", "-o", path], input=SOURCE.encode(), check=True)
            _library = ctypes.CDLL(path)
    return _library


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU())

    def forward(self, x):
        if x.device != next(self.parameters()).device:
            raise RuntimeError(f"the input is on {x.device}")
        plan = {"count": 0}
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                y = x.new_zeros((x.shape[0], layer.out_features))
                sizes = map(ctypes.c_long, (len(x), layer.in_features, layer.out_features))
                library().linear(pointer(x), pointer(layer.weight), pointer(layer.bias.data), pointer(y), *sizes)
                plan["y"], plan["count"] = y, y.numel()
            else:
                library().relu_(pointer(plan["y"]), ctypes.c_long(plan["count"] * 1))
        return plan["y"]
