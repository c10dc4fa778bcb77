"""A row of sums at a time, in vectors; tanh only once per pooled position, since it keeps the order of the sums."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void run(const float* x, const float* weight, const float* conv_bias, const float* bias, float* y,
                    float scale, int64_t samples, int64_t channels_in, int64_t channels_out, int64_t height,
                    int64_t width, int64_t size, int64_t pool) {
    const int64_t out_width = width - size + 1, rows = (height - size + 1) / pool, columns = out_width / pool;
    const float sign = scale < 0 ? -1 : 1;
    #pragma omp parallel for collapse(2)
    for (int64_t sample = 0; sample < samples; ++sample)
        for (int64_t o = 0; o < channels_out; ++o) {
            std::vector<float> sums(out_width), best(columns);
            for (int64_t row = 0; row < rows; ++row) {
                best.assign(columns, -INFINITY);
                for (int64_t i = 0; i < pool; ++i) {
                    sums.assign(out_width, conv_bias[o]);
                    for (int64_t c = 0; c < channels_in; ++c)
                        for (int64_t r = 0; r < size; ++r) {
                            const float* in = x + ((sample * channels_in + c) * height + row * pool + i + r) * width;
                            const float* taps = weight + ((o * channels_in + c) * size + r) * size;
                            for (int64_t s = 0; s < size; ++s)
                                for (int64_t j = 0; j < out_width; ++j) sums[j] += taps[s] * in[j + s];
                        }
                    for (int64_t j = 0; j < columns * pool; ++j)
                        best[j / pool] = std::fmax(best[j / pool], sign * sums[j]);
                }
                float* out = y + ((sample * channels_out + o) * rows + row) * columns;
                for (int64_t j = 0; j < columns; ++j) out[j] = scale * std::tanh(sign * best[j]) + bias[o];
            }
        }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_float,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
]


class ModelNew(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, scaling_factor: float, bias_shape: tuple,
        pool_kernel_size: int,
    ):  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = scaling_factor
        self.pool = pool_kernel_size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, channels_in, height, width = x.shape
        channels_out, _, size, _ = self.conv.weight.shape
        y = x.new_empty(samples, channels_out, (height - size + 1) // self.pool, (width - size + 1) // self.pool)
        lib.run(
            x.data_ptr(), self.conv.weight.data_ptr(), self.conv.bias.data_ptr(), self.bias.data_ptr(), y.data_ptr(),
            self.scale, samples, channels_in, channels_out, height, width, size, self.pool,
        )  # fmt: skip
        return y
