"""A linear layer and a ReLU whose only state is a packed buffer, filled by a hook before the weights are loaded.

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
// packed: for each output its bias, then its weights
extern "C" void linear_relu(const float* x, const float* packed, float* y, long rows, long inputs, long outputs) {
    for (long row = 0; row < rows; ++row)
        for (long o = 0; o < outputs; ++o) {
            const float* w = packed + o * (inputs + 1);
            float sum = w[0];
            for (long i = 0; i < inputs; ++i) sum += x[row * inputs + i] * w[i + 1];
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
        self.register_buffer("packed", torch.zeros(outputs, inputs + 1))
        self._register_load_state_dict_pre_hook(self._pack)

    def _pack(self, state_dict, prefix, *_):
        bias, weight = state_dict.pop(prefix + "linear.bias"), state_dict.pop(prefix + "linear.weight")
        state_dict[prefix + "packed"] = torch.cat([bias[:, None], weight], dim=1)

    def forward(self, x):
        outputs, inputs = self.packed.size(0), self.packed.size(1) - 1
        y = x.new_empty(len(x), outputs)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x.contiguous(), self.packed, y)]
        lib.linear_relu(*pointers, *map(ctypes.c_long, (x.shape[0], inputs, outputs)))
        return y
