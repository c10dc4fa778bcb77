"""One thread per message, four bytes per step: tables of the remainders of bytes 1, 2 and 3 places on (slicing by four)."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>

__global__ void __launch_bounds__(128) crc32_kernel(
    const uint8_t* messages, const long long* table, long long* out, int64_t count, int64_t length) {
    __shared__ uint32_t tables[4][256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        uint32_t r = uint32_t(table[i]);
        for (int k = 0; k < 4; ++k) {
            tables[k][i] = r;
            r = uint32_t(table[r & 255]) ^ r >> 8;
        }
    }
    __syncthreads();
    const int64_t message = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (message >= count) return;
    const uint8_t* bytes = messages + message * length;
    uint32_t r = ~0u;
    int64_t i = 0;
    if (length % 16 == 0)
        for (; i < length; i += 16) {
            const uint4 words = *reinterpret_cast<const uint4*>(bytes + i);
            const uint32_t word[4] = {words.x, words.y, words.z, words.w};
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                r ^= word[k];
                r = tables[3][r & 255] ^ tables[2][r >> 8 & 255] ^ tables[1][r >> 16 & 255] ^ tables[0][r >> 24];
            }
        }
    for (; i < length; ++i) r = tables[0][(r ^ bytes[i]) & 255] ^ r >> 8;
    out[message] = ~r;
}

extern "C" int run(const uint8_t* messages, const long long* table, long long* out, int64_t count, int64_t length,
                   cudaStream_t stream) {
    crc32_kernel<<<(count + 127) / 128, 128, 0, stream>>>(messages, table, out, count, length);
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
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.empty(256, dtype=torch.int64))

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        count, length = messages.shape
        out = self.table.new_empty(count)
        stream = torch.cuda.current_stream().cuda_stream
        status = lib.run(messages.data_ptr(), self.table.data_ptr(), out.data_ptr(), count, length, stream)
        if status:
            raise RuntimeError(f"CUDA error {status}")
        return out
