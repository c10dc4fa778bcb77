"""One thread per block of text; S-box, column mixing and row shift of a byte are one look-up in shared memory (T-table).

The other three tables are rotations of the first. The key is expanded once, by a kernel of its own.
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

__global__ void expand_kernel(const long long* key, const long long* sbox, const long long* rcon, uint32_t* keys) {
    if (threadIdx.x) return;
    for (int i = 0; i < 4; ++i)  // a word is a column, its first byte lowest
        keys[i] = uint32_t(key[4 * i] | key[4 * i + 1] << 8 | key[4 * i + 2] << 16 | key[4 * i + 3] << 24);
    for (int i = 4; i < 44; ++i) {
        uint32_t word = keys[i - 1];
        if (i % 4 == 0) {
            word = word >> 8 | word << 24;
            word = uint32_t(sbox[word & 255] | sbox[word >> 8 & 255] << 8 | sbox[word >> 16 & 255] << 16 |
                            sbox[word >> 24] << 24);
            word ^= uint32_t(rcon[i / 4 - 1]);
        }
        keys[i] = keys[i - 4] ^ word;
    }
}

__device__ uint32_t turned(uint32_t x, int by) { return __funnelshift_l(x, x, by); }

__global__ void __launch_bounds__(256) encrypt_kernel(
    const long long* text, const uint32_t* keys, const long long* sbox, long long* out, int64_t blocks) {
    __shared__ uint32_t table[256], key[44];
    __shared__ uint8_t box[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        const uint32_t s = uint32_t(sbox[i]), doubled = (s << 1 ^ (s >> 7) * 0x11B) & 255;
        box[i] = uint8_t(s);
        table[i] = doubled | s << 8 | s << 16 | (doubled ^ s) << 24;
    }
    for (int i = threadIdx.x; i < 44; i += blockDim.x) key[i] = keys[i];
    __syncthreads();
    for (int64_t b = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks; b += int64_t(gridDim.x) * blockDim.x) {
        const longlong2* in = reinterpret_cast<const longlong2*>(text) + 8 * b;
        uint32_t s[4], t[4];
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
            const longlong2 low = in[2 * c], high = in[2 * c + 1];
            s[c] = key[c] ^ uint32_t(low.x | low.y << 8 | high.x << 16 | high.y << 24);
        }
        #pragma unroll
        for (int round = 1; round < 10; ++round) {
            #pragma unroll
            for (int c = 0; c < 4; ++c)  // row r comes from r columns to the right
                t[c] = key[4 * round + c] ^ table[s[c] & 255] ^ turned(table[s[(c + 1) % 4] >> 8 & 255], 8) ^
                       turned(table[s[(c + 2) % 4] >> 16 & 255], 16) ^ turned(table[s[(c + 3) % 4] >> 24], 24);
            #pragma unroll
            for (int c = 0; c < 4; ++c) s[c] = t[c];
        }
        longlong2* to = reinterpret_cast<longlong2*>(out) + 8 * b;
        #pragma unroll
        for (int c = 0; c < 4; ++c) {
            const uint32_t k = key[40 + c];
            to[2 * c] = make_longlong2((box[s[c] & 255] ^ k) & 255, (box[s[(c + 1) % 4] >> 8 & 255] ^ k >> 8) & 255);
            to[2 * c + 1] = make_longlong2(
                (box[s[(c + 2) % 4] >> 16 & 255] ^ k >> 16) & 255, (box[s[(c + 3) % 4] >> 24] ^ k >> 24) & 255);
        }
    }
}

extern "C" int run(const long long* text, const long long* key, const long long* sbox, const long long* rcon,
                   uint32_t* keys, long long* out, int64_t blocks, int most, cudaStream_t stream) {
    expand_kernel<<<1, 32, 0, stream>>>(key, sbox, rcon, keys);
    const int64_t wanted = (blocks + 255) / 256;
    encrypt_kernel<<<wanted < most ? wanted : most, 256, 0, stream>>>(text, keys, sbox, out, blocks);
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
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int,
    ctypes.c_void_p,
]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sbox", torch.empty(256, dtype=torch.int64))
        self.register_buffer("rcon", torch.empty(10, dtype=torch.int64))

    def forward(self, plaintext: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(plaintext)
        keys = key.new_empty(44, dtype=torch.int32)
        processors = torch.cuda.get_device_properties(key.device).multi_processor_count
        status = lib.run(
            plaintext.data_ptr(), key.data_ptr(), self.sbox.data_ptr(), self.rcon.data_ptr(), keys.data_ptr(),
            out.data_ptr(), plaintext.numel() // 16, 8 * processors, torch.cuda.current_stream().cuda_stream,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
