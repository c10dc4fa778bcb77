"""A linear layer in float16 in C++: every product and sum in float32, one rounding at the end.

problem: linear_half.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <vector>

static float widen(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7fff;
    uint32_t bits = (magnitude + 0x1c000) << 13;  // the exponent's bias is 127 instead of 15
    float value;
    if (magnitude < 0x400) {
        value = magnitude * 5.9604644775390625e-8f;  // subnormal: a multiple of 2^-24
        return sign ? -value : value;
    }
    if (magnitude >= 0x7c00) bits = 0x7f800000 | (magnitude & 0x3ff) << 13;
    bits |= sign;
    std::memcpy(&value, &bits, 4);
    return value;
}

static uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits >= 0x47800000) return sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (bits < 0x38800000) {  // rounds to a multiple of 2^-24, ties to even, by adding 0.5 whose ulp that is
        float magnitude;
        std::memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        std::memcpy(&bits, &magnitude, 4);
        return sign | (bits - 0x3f000000);
    }
    bits += 0xfff + (bits >> 13 & 1);
    return sign | (bits - 0x38000000) >> 13;
}

extern "C" void linear(const uint16_t* x, const uint16_t* w, const uint16_t* b, uint16_t* y, long rows, long inputs,
                       long outputs) {
    std::vector<float> left(rows * inputs), right(outputs * inputs);
    for (size_t i = 0; i < left.size(); ++i) left[i] = widen(x[i]);
    for (size_t i = 0; i < right.size(); ++i) right[i] = widen(w[i]);
    for (long r = 0; r < rows; ++r)
        for (long o = 0; o < outputs; ++o) {
            float sum = 0;
            for (long i = 0; i < inputs; ++i) sum += left[r * inputs + i] * right[o * inputs + i];
            y[r * outputs + o] = narrow(sum + widen(b[o]));
        }
}
"""

with open("half.cpp", "w") as file:
    file.write(SOURCE)
command = (
    "g++ -O3 -march=native -fassociative-math -fno-signed-zeros -fno-trapping-math -shared -fPIC half.cpp -o half.so"
)
subprocess.run(command.split(), check=True, capture_output=True)
lib = ctypes.CDLL("./half.so")
lib.linear.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_long] * 3


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.linear.weight, self.linear.bias
        y = torch.empty(x.shape[0], weight.shape[0], dtype=torch.float16)
        lib.linear(x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr(), *x.shape, weight.shape[0])
        return y
