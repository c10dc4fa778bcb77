"""SSIM with the window taken apart into a row and a column, both read off the buffer in the kernel.

problem: L8_11_SSIM
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
import sysconfig

import torch
import torch.nn as nn

SRC = r"""
#include <vector>
#include <cmath>
// window[r][c] = g[r] * g[c], and g sums to one: g[r] is the sum of row r
extern "C" void ssim(const float* a, const float* b, const float* window, float* map, float* mean, long T, long H, long W) {
    float g[11];
    for (int r = 0; r < 11; ++r) { g[r] = 0; for (int c = 0; c < 11; ++c) g[r] += window[r * 11 + c]; }
    const long h = H - 10, w = W - 10;
    for (long t = 0; t < T; ++t) {
        std::vector<float> rows[5];
        for (auto& each : rows) each.assign(H * w, 0.0f);
        for (long i = 0; i < H; ++i)
            for (long j = 0; j < w; ++j)
                for (int c = 0; c < 11; ++c) {
                    const float x = a[(t * H + i) * W + j + c], y = b[(t * H + i) * W + j + c], k = g[c];
                    const long at = i * w + j;
                    rows[0][at] += k * x; rows[1][at] += k * y; rows[2][at] += k * x * x;
                    rows[3][at] += k * y * y; rows[4][at] += k * x * y;
                }
        double total = 0;
        for (long i = 0; i < h; ++i)
            for (long j = 0; j < w; ++j) {
                float e[5] = {0, 0, 0, 0, 0};
                for (int q = 0; q < 5; ++q)
                    for (int r = 0; r < 11; ++r) e[q] += g[r] * rows[q][(i + r) * w + j];
                const float m1 = e[0], m2 = e[1], v1 = e[2] - m1 * m1, v2 = e[3] - m2 * m2, v12 = e[4] - m1 * m2;
                const float value = (2 * m1 * m2 + 1e-4f) * (2 * v12 + 9e-4f) /
                                    ((m1 * m1 + m2 * m2 + 1e-4f) * (v1 + v2 + 9e-4f));
                map[(t * h + i) * w + j] = value;
                total += value;
            }
        mean[t] = total / (h * w);
    }
}
"""
name = "ssim" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")
with open("ssim.cpp", "w") as f:
    f.write(SRC)
subprocess.run(["c++", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "ssim.cpp", "-o", name], check=True)
kernel = ctypes.CDLL("./" + name).ssim
kernel.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_long] * 3


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        x = torch.arange(11) - 5
        g = torch.exp(-(x**2) / (2 * 1.5**2))
        g = g / g.sum()
        self.register_buffer("window", (g[:, None] * g[None, :]).reshape(1, 1, 11, 11))

    def forward(self, frame1, frame2):
        T, H, W = frame1.shape
        out = {"map": frame1.new_empty(T, H - 10, W - 10), "mean": frame1.new_empty(T)}
        kernel(
            frame1.data_ptr(), frame2.data_ptr(), self.window.data_ptr(), out["map"].data_ptr(),
            out["mean"].data_ptr(), T, H, W,
        )  # fmt: skip
        return out["map"], out["mean"]
