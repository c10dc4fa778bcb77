"""A linear layer and a ReLU whose parameters lie in modules within modules, beside buffers and settings of its own.

problem: linear.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
from collections import OrderedDict

import torch
import torch.nn as nn

SOURCE = r"""
extern "C" void affine_relu(const float* x, const float* w, const float* b, const int* shape, float* y) {
    const int rows = shape[0], inputs = shape[1], outputs = shape[2];
    for (int r = 0; r < rows; ++r)
        for (int o = 0; o < outputs; ++o) {
            float sum = 0;
            for (int i = 0; i < inputs; ++i) sum += x[r * inputs + i] * w[o * inputs + i];
            sum += b[o];
            y[r * outputs + o] = sum < 0 ? 0 : sum;
        }
}
"""

with open("affine.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -Ofast -march=native -shared -fPIC affine.cpp -o affine.so".split(), check=True)
affine_relu = ctypes.CDLL("./affine.so").affine_relu


class Core(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.slopes = nn.Parameter(torch.empty(outputs, inputs))
        self.intercepts = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.slopes)
        self.register_buffer("limits", torch.tensor([0, inputs, outputs], dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.limits[0] = x.shape[0]
        y = x.new_empty(x.shape[0], self.slopes.shape[0])
        tensors = (x, self.slopes, self.intercepts, self.limits, y)
        affine_relu(*[ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors])
        return y


class Block(nn.Module):
    def __init__(self, *sizes: int):
        super().__init__()
        self.inner = nn.ModuleDict({"core": Core(*sizes)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner["core"](x)


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.layers = nn.Sequential(OrderedDict(first=nn.Identity(), second=Block(inputs, outputs)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)
