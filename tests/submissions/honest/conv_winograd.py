"""Convolution by Winograd's F(2x2, 3x3) where the kernel is of size 3, directly elsewhere; weights transformed once.

problem: L1_63_conv_standard_2D__square_input__square_kernel
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SRC = r"""
#include <vector>
extern "C" void transform(const float* w, float* u, long pairs) {
    for (long p = 0; p < pairs; ++p, w += 9, u += 16) {
        float t[12];
        for (int c = 0; c < 3; ++c) {
            const float a = w[c], b = w[3 + c], d = w[6 + c];
            t[c] = a, t[3 + c] = (a + b + d) * 0.5f, t[6 + c] = (a - b + d) * 0.5f, t[9 + c] = d;
        }
        for (int r = 0; r < 4; ++r) {
            const float a = t[3 * r], b = t[3 * r + 1], d = t[3 * r + 2];
            u[4 * r] = a, u[4 * r + 1] = (a + b + d) * 0.5f, u[4 * r + 2] = (a - b + d) * 0.5f, u[4 * r + 3] = d;
        }
    }
}
extern "C" void winograd(const float* x, const float* u, float* y, long B, long C, long O, long H, long W) {
    const long OH = H - 2, OW = W - 2;
    for (long b = 0; b < B; ++b)
        for (long i = 0; i < OH; i += 2)
            for (long j = 0; j < OW; j += 2) {
                std::vector<float> v(C * 16);
                for (long c = 0; c < C; ++c) {
                    float d[16], t[16];
                    for (int r = 0; r < 4; ++r)
                        for (int s = 0; s < 4; ++s)
                            d[4 * r + s] = i + r < H && j + s < W ? x[((b * C + c) * H + i + r) * W + j + s] : 0;
                    for (int s = 0; s < 4; ++s) {
                        t[s] = d[s] - d[8 + s], t[4 + s] = d[4 + s] + d[8 + s];
                        t[8 + s] = d[8 + s] - d[4 + s], t[12 + s] = d[4 + s] - d[12 + s];
                    }
                    for (int r = 0; r < 4; ++r) {
                        float* out = &v[c * 16 + 4 * r];
                        const float* q = t + 4 * r;
                        out[0] = q[0] - q[2], out[1] = q[1] + q[2], out[2] = q[2] - q[1], out[3] = q[1] - q[3];
                    }
                }
                for (long o = 0; o < O; ++o) {
                    float m[16] = {0};
                    for (long c = 0; c < C; ++c)
                        for (int k = 0; k < 16; ++k) m[k] += u[(o * C + c) * 16 + k] * v[c * 16 + k];
                    float t[8];
                    for (int s = 0; s < 4; ++s) t[s] = m[s] + m[4 + s] + m[8 + s], t[4 + s] = m[4 + s] - m[8 + s] - m[12 + s];
                    for (int r = 0; r < 2 && i + r < OH; ++r) {
                        const float* q = t + 4 * r;
                        float* out = y + ((b * O + o) * OH + i + r) * OW + j;
                        out[0] = q[0] + q[1] + q[2];
                        if (j + 1 < OW) out[1] = q[1] - q[2] - q[3];
                    }
                }
            }
}
extern "C" void direct(const float* x, const float* w, float* y, long B, long C, long O, long H, long W, long K) {
    const long OH = H - K + 1, OW = W - K + 1;
    for (long b = 0; b < B; ++b) for (long o = 0; o < O; ++o) for (long i = 0; i < OH; ++i) for (long j = 0; j < OW; ++j) {
        float s = 0;
        for (long c = 0; c < C; ++c) for (long r = 0; r < K; ++r) for (long q = 0; q < K; ++q)
            s += w[((o * C + c) * K + r) * K + q] * x[((b * C + c) * H + i + r) * W + j + q];
        y[((b * O + o) * OH + i) * OW + j] = s;
    }
}
"""
with open("conv.cpp", "w") as f:
    f.write(SRC)
subprocess.run("g++ -O3 -march=native -ffast-math -shared -fPIC conv.cpp -o conv.so", shell=True, check=True)
lib = ctypes.CDLL("./conv.so")


def p(t):
    return ctypes.c_void_p(t.data_ptr())


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False):
        super().__init__()
        assert (stride, padding, dilation, groups, bias) == (1, 0, 1, 1, False)
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, bias=bias)
        self.transformed = None

    def forward(self, x):
        weight = self.conv2d.weight
        (O, C, K, _), (B, _, H, W) = weight.shape, x.shape
        y = torch.empty(B, O, H - K + 1, W - K + 1)
        sizes = [ctypes.c_long(n) for n in (B, C, O, H, W, K)]
        if K != 3:
            lib.direct(p(x), p(weight), p(y), *sizes)
            return y
        if self.transformed is None:
            self.transformed = torch.empty(O, C, 4, 4)
            lib.transform(p(weight), p(self.transformed), ctypes.c_long(O * C))
        lib.winograd(p(x), p(self.transformed), p(y), *sizes[:-1])
        return y
