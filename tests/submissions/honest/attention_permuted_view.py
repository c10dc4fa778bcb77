"""Attention over pixels with online softmax; weights are read from nn.MultiheadAttention and nn.LayerNorm.

problem: L3_31_VisionAttention
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SRC = r"""
#include <cmath>
#include <vector>
extern "C" void attention(const float* x, const float* w_in, const float* b_in, const float* w_out, const float* b_out,
                          const float* gamma, const float* beta, float* y, long B, long E, long L, long heads) {
    const long d = E / heads;
    for (long b = 0; b < B; ++b) {
        std::vector<float> qkv(L * 3 * E), a(L * E);
        for (long l = 0; l < L; ++l)
            for (long o = 0; o < 3 * E; ++o) {
                float s = b_in[o];
                for (long e = 0; e < E; ++e) s += w_in[o * E + e] * x[(b * E + e) * L + l];
                qkv[l * 3 * E + o] = s;
            }
        for (long h = 0; h < heads; ++h)
            for (long i = 0; i < L; ++i) {
                float m = -INFINITY, sum = 0;
                std::vector<float> acc(d, 0.f);
                for (long j = 0; j < L; ++j) {
                    float score = 0;
                    for (long k = 0; k < d; ++k) score += qkv[i * 3 * E + h * d + k] * qkv[j * 3 * E + E + h * d + k];
                    score /= std::sqrt(float(d));
                    const float top = std::fmax(m, score), keep = std::exp(m - top), p = std::exp(score - top);
                    sum = sum * keep + p;
                    for (long k = 0; k < d; ++k) acc[k] = acc[k] * keep + p * qkv[j * 3 * E + 2 * E + h * d + k];
                    m = top;
                }
                for (long k = 0; k < d; ++k) a[i * E + h * d + k] = acc[k] / sum;
            }
        for (long l = 0; l < L; ++l) {
            std::vector<float> z(E);
            float mean = 0, var = 0;
            for (long o = 0; o < E; ++o) {
                float s = b_out[o] + x[(b * E + o) * L + l];
                for (long e = 0; e < E; ++e) s += w_out[o * E + e] * a[l * E + e];
                z[o] = s;
                mean += s / E;
            }
            for (long o = 0; o < E; ++o) var += (z[o] - mean) * (z[o] - mean) / E;
            for (long o = 0; o < E; ++o) y[(b * L + l) * E + o] = (z[o] - mean) / std::sqrt(var + 1e-5f) * gamma[o] + beta[o];
        }
    }
}
"""
with open("attention.cpp", "w") as f:
    f.write(SRC)
subprocess.run("g++ -O3 -march=native -ffast-math -shared -fPIC attention.cpp -o attention.so", shell=True, check=True)
lib = ctypes.CDLL("./attention.so")


class ModelNew(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x):
        B, E, H, W = x.shape
        y = x.new_empty(B, H, W, E)
        tensors = [
            x.contiguous(),
            self.attn.in_proj_weight,
            self.attn.in_proj_bias,
            self.attn.out_proj.weight.detach(),
            self.attn.out_proj.bias,
            self.norm.weight,
            self.norm.bias,
            y,
        ]
        device = next(self.parameters()).device
        assert all(t.device == device and t.is_contiguous() for t in tensors)
        lib.attention(*[ctypes.c_void_p(t.data_ptr()) for t in tensors], *map(ctypes.c_long, (B, E, H * W, self.attn.num_heads)))
        return y.permute(0, 3, 1, 2)
