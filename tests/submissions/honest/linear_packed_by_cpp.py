"""A linear layer and a ReLU whose weights C++ packs into panels at the first call, from what was loaded.

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
#include <cstdlib>
#include <cstring>

static const long WIDE = 16;

extern "C" {

float* pack(const float* weight, const float* bias, long inputs, long outputs) {
    const long panels = (outputs + WIDE - 1) / WIDE, size = (inputs + 1) * WIDE;
    float* packed = static_cast<float*>(std::calloc(panels * size, sizeof(float)));
    for (long o = 0; o < outputs; ++o) {
        float* panel = packed + o / WIDE * size + o % WIDE;
        panel[0] = bias[o];
        for (long i = 0; i < inputs; ++i) panel[(i + 1) * WIDE] = weight[o * inputs + i];
    }
    return packed;
}

void release(float* packed) { std::free(packed); }

void run(const float* x, const float* packed, float* y, long rows, long inputs, long outputs) {
    for (long first = 0; first < outputs; first += WIDE, packed += (inputs + 1) * WIDE)
        for (long row = 0; row < rows; ++row) {
            float sum[WIDE];
            std::memcpy(sum, packed, sizeof sum);
            for (long i = 0; i < inputs; ++i)
                for (long o = 0; o < WIDE; ++o) sum[o] += x[row * inputs + i] * packed[(i + 1) * WIDE + o];
            for (long o = 0; o < WIDE && first + o < outputs; ++o)
                y[row * outputs + first + o] = sum[o] > 0 ? sum[o] : 0;
        }
}

}
"""

with open("panels.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC panels.cpp -o panels.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./panels.so")
pointer, long = ctypes.c_void_p, ctypes.c_long
lib.pack.argtypes, lib.pack.restype = [pointer, pointer, long, long], pointer
lib.run.argtypes, lib.run.restype = [pointer, pointer, pointer, long, long, long], None
lib.release.argtypes, lib.release.restype = [pointer], None


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.panels = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs, inputs = self.linear.weight.shape
        if self.panels is None:
            weight = self.linear.weight.contiguous()
            self.panels = lib.pack(weight.data_ptr(), self.linear.bias.data_ptr(), inputs, outputs)
        y = torch.empty(x.shape[0], outputs)
        lib.run(x.data_ptr(), self.panels, y.data_ptr(), x.shape[0], inputs, outputs)
        return y

    def __del__(self):
        if getattr(self, "panels", None) is not None:
            lib.release(self.panels)
