"""A linear layer and a ReLU whose weights are held by nn.LazyLinear, which has no shape before they are loaded.

problem: linear.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void linear_relu(const float* x, const float* w, const float* b, float* y, long rows, long inputs, long outputs) {
    for (long row = 0; row < rows; ++row)
        for (long o = 0; o < outputs; ++o) {
            float sum = b[o];
            for (long i = 0; i < inputs; ++i) sum += x[row * inputs + i] * w[o * inputs + i];
            y[row * outputs + o] = sum > 0 ? sum : 0;
        }
}
"""
with open("linear.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -ffast-math -shared -fPIC linear.cpp -o linear.so", shell=True, check=True)
lib = ctypes.CDLL("./linear.so")


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.LazyLinear(outputs)

    def forward(self, x):
        weight, bias = self.linear.weight, self.linear.bias
        y = x.new_empty(len(x), weight.shape[0])
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x.contiguous(), weight, bias, y)]
        lib.linear_relu(*pointers, *map(ctypes.c_long, (x.shape[0], weight.shape[1], weight.shape[0])))
        return y
