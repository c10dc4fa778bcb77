"""A linear layer and a ReLU whose weight is held transposed, by an override of what loads it, under other names.

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
extern "C" void linear_relu(const float* x, const float* wt, const float* b, float* y, long rows, long inputs, long outputs) {
    for (long row = 0; row < rows; ++row) {
        float* out = y + row * outputs;
        for (long o = 0; o < outputs; ++o) out[o] = b[o];
        for (long i = 0; i < inputs; ++i)
            for (long o = 0; o < outputs; ++o) out[o] += x[row * inputs + i] * wt[i * outputs + o];
        for (long o = 0; o < outputs; ++o) out[o] = out[o] > 0 ? out[o] : 0;
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
        self.weight_t = nn.Parameter(torch.empty(inputs, outputs))
        self.shift = nn.Parameter(torch.empty(outputs))

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        if prefix + "linear.weight" in state_dict:
            state_dict[prefix + "weight_t"] = state_dict.pop(prefix + "linear.weight").t().contiguous()
            state_dict[prefix + "shift"] = state_dict.pop(prefix + "linear.bias")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def forward(self, x):
        inputs, outputs = self.weight_t.shape
        y = x.new_empty(len(x), outputs)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x.contiguous(), self.weight_t, self.shift, y)]
        lib.linear_relu(*pointers, *map(ctypes.c_long, (x.shape[0], inputs, outputs)))
        return y
