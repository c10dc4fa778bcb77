"""Messages are divided among threads, and every word is the 32-bit integer that it is in the standard."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void compress(uint32_t* state, uint32_t* w, const uint32_t* k) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; ++t) {
        if (t >= 16) {  // w holds the last sixteen words
            const uint32_t x = w[(t + 1) % 16], y = w[(t + 14) % 16];
            w[t % 16] += (turned(x, 7) ^ turned(x, 18) ^ (x >> 3)) + w[(t + 9) % 16] +
                         (turned(y, 17) ^ turned(y, 19) ^ (y >> 10));
        }
        const uint32_t t1 = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (g ^ (e & (f ^ g))) + k[t] + w[t % 16];
        const uint32_t t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) | (c & (a | b)));
        h = g; g = f; f = e; e = d + t1;
        d = c; c = b; b = a; a = t1 + t2;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

// byte i of the padded message, of which `padded` bytes are there
static uint32_t byte_at(const long long* message, int64_t i, int64_t length, int64_t padded) {
    if (i < length) return uint32_t(message[i]);
    if (i == length) return 0x80;
    return i >= padded - 8 ? uint32_t(uint64_t(8 * length) >> (8 * (padded - 1 - i))) & 255 : 0;
}

static void digest(const long long* message, const long long* initial, const uint32_t* k, long long* hash,
                       int64_t length) {
    uint32_t state[8], w[16];
    for (int i = 0; i < 8; ++i) state[i] = uint32_t(initial[i]);
    const int64_t padded = (length + 9 + 63) / 64 * 64;
    for (int64_t first = 0; first < padded; first += 64) {
            for (int i = 0; i < 16; ++i) {
            const int64_t at = first + 4 * i;
            w[i] = byte_at(message, at, length, padded) << 24 | byte_at(message, at + 1, length, padded) << 16 |
                   byte_at(message, at + 2, length, padded) << 8 | byte_at(message, at + 3, length, padded);
        }
        compress(state, w, k);
    }
    for (int i = 0; i < 8; ++i) hash[i] = state[i];
}

extern "C" void run(const long long* messages, const long long* constants, const long long* initial,
                    long long* hashes, int64_t batch, int64_t length) {
    uint32_t k[64];
    for (int i = 0; i < 64; ++i) k[i] = uint32_t(constants[i]);
    #pragma omp parallel for
    for (int64_t i = 0; i < batch; ++i) digest(messages + i * length, initial, k, hashes + 8 * i, length);
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("K", torch.empty(64, dtype=torch.int64))
        self.register_buffer("H0", torch.empty(8, dtype=torch.int64))

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        batch, length = messages.shape
        hashes = messages.new_empty(batch, 8)
        lib.run(messages.data_ptr(), self.K.data_ptr(), self.H0.data_ptr(), hashes.data_ptr(), batch, length)
        return hashes
