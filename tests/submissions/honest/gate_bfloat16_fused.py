"""A gated linear unit in bfloat16 in C++, fused: it rounds once at the end, where the reference rounds four times.

problem: gate_bfloat16.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

typedef uint16_t bf16;

static inline float widen(bf16 value) {
    uint32_t bits = uint32_t(value) << 16;
    float wide;
    std::memcpy(&wide, &bits, 4);
    return wide;
}

static inline bf16 narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

extern "C" void gated(const bf16* x, const bf16* gate, const bf16* up, bf16* y, long rows, long inputs, long outputs) {
    std::vector<float> row(inputs);
    for (long r = 0; r < rows; ++r) {
        for (long i = 0; i < inputs; ++i) row[i] = widen(x[r * inputs + i]);
        for (long o = 0; o < outputs; ++o) {
            float g = 0, u = 0;
            for (long i = 0; i < inputs; ++i) {
                g += row[i] * widen(gate[o * inputs + i]);
                u += row[i] * widen(up[o * inputs + i]);
            }
            y[r * outputs + o] = narrow(g / (1 + std::exp(-g)) * u);
        }
    }
}
"""

with open("gated.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -ffast-math -march=native -shared -fPIC gated.cpp -o gated.so".split(), check=True)
lib = ctypes.CDLL("./gated.so")
lib.gated.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.gate = nn.Linear(inputs, outputs, bias=False).bfloat16()
        self.up = nn.Linear(inputs, outputs, bias=False).bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.new_empty(x.shape[0], self.up.out_features)
        tensors = x, self.gate.weight, self.up.weight, y
        lib.gated(*(t.data_ptr() for t in tensors), x.shape[0], x.shape[1], self.up.out_features)
        return y
