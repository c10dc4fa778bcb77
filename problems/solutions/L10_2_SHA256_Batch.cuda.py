"""One thread per message, its state and the last sixteen words of its schedule in registers, as 32-bit words."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

__device__ uint32_t turned(uint32_t x, int by) { return __funnelshift_r(x, x, by); }

__device__ void compress(uint32_t* state, uint32_t* w, const uint32_t* k) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    #pragma unroll
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
__device__ uint32_t byte_at(const long long* message, int64_t i, int64_t length, int64_t padded) {
    if (i < length) return uint32_t(message[i]);
    if (i == length) return 0x80;
    return i >= padded - 8 ? uint32_t(uint64_t(8 * length) >> (8 * (padded - 1 - i))) & 255 : 0;
}

__device__ void digest(const long long* message, const long long* initial, const uint32_t* k, long long* hash,
                       int64_t length) {
    uint32_t state[8], w[16];
    for (int i = 0; i < 8; ++i) state[i] = uint32_t(initial[i]);
    const int64_t padded = (length + 9 + 63) / 64 * 64;
    for (int64_t first = 0; first < padded; first += 64) {
        #pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int64_t at = first + 4 * i;
            if (at + 4 <= length && length % 2 == 0) {  // four bytes are two loads
                const longlong2* pairs = reinterpret_cast<const longlong2*>(message + at);
                const longlong2 a = pairs[0], b = pairs[1];
                w[i] = uint32_t(a.x) << 24 | uint32_t(a.y) << 16 | uint32_t(b.x) << 8 | uint32_t(b.y);
                continue;
            }
            w[i] = byte_at(message, at, length, padded) << 24 | byte_at(message, at + 1, length, padded) << 16 |
                   byte_at(message, at + 2, length, padded) << 8 | byte_at(message, at + 3, length, padded);
        }
        compress(state, w, k);
    }
    for (int i = 0; i < 8; ++i) hash[i] = state[i];
}

__global__ void __launch_bounds__(128) sha256_kernel(const long long* messages, const long long* constants,
    const long long* initial, long long* hashes, int64_t batch, int64_t length) {
    __shared__ uint32_t k[64];
    if (threadIdx.x < 64) k[threadIdx.x] = uint32_t(constants[threadIdx.x]);
    __syncthreads();
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < batch) digest(messages + i * length, initial, k, hashes + 8 * i, length);
}

extern "C" int run(const long long* messages, const long long* constants, const long long* initial, long long* hashes,
                   int64_t batch, int64_t length, cudaStream_t stream) {
    sha256_kernel<<<(batch + 127) / 128, 128, 0, stream>>>(messages, constants, initial, hashes, batch, length);
    return cudaGetLastError();
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cu").write_text(SOURCE)
    major, minor = torch.cuda.get_device_capability()
    options = ["-O3", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run(["nvcc", *options, "kernel.cu", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("K", torch.empty(64, dtype=torch.int64))
        self.register_buffer("H0", torch.empty(8, dtype=torch.int64))

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        batch, length = messages.shape
        hashes = messages.new_empty(batch, 8)
        status = lib.run(
            messages.data_ptr(), self.K.data_ptr(), self.H0.data_ptr(), hashes.data_ptr(), batch, length,
            torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return hashes
