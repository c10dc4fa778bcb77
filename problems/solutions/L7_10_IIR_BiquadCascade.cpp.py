"""A channel runs through all sections sample by sample: the recursion as it is written, with two states per section."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <vector>

extern "C" void run(const float* x, const float* forward, const float* back, float* y, int64_t channels,
                    int64_t sections, int64_t samples) {
    #pragma omp parallel for
    for (int64_t c = 0; c < channels; ++c) {
        const float *b = forward + c * sections * 3, *a = back + c * sections * 2;
        std::vector<double> first(sections), second(sections);  // transposed direct form
        for (int64_t t = 0; t < samples; ++t) {
            double u = x[c * samples + t];
            for (int64_t s = 0; s < sections; ++s) {
                const double z = b[3 * s] * u + first[s];
                first[s] = b[3 * s + 1] * u - a[2 * s] * z + second[s];
                second[s] = b[3 * s + 2] * u - a[2 * s + 1] * z;
                u = z;
            }
            y[c * samples + t] = float(u);
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
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
]


class ModelNew(nn.Module):
    def __init__(self, channels: int, sections: int):
        super().__init__()
        self.register_buffer("feedforward", torch.empty(channels, sections, 3))
        self.register_buffer("feedback", torch.empty(channels, sections, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        channels, samples = x.shape
        lib.run(
            x.data_ptr(), self.feedforward.data_ptr(), self.feedback.data_ptr(), y.data_ptr(), channels,
            self.feedback.shape[1], samples,
        )  # fmt: skip
        return y
