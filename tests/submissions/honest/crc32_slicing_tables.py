"""CRC-32 in C++, eight bytes at a time by eight tables that it makes at its first call.

problem: L10_11_CRC32_Batch
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

static uint32_t table[8][256];
static const bool made = [] {
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t r = i;
        for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ (r & 1 ? 0xEDB88320u : 0);
        table[0][i] = r;
    }
    for (int slice = 1; slice < 8; ++slice)
        for (int i = 0; i < 256; ++i)
            table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 0xFF];
    return true;
}();

extern "C" void crc32(const uint8_t* messages, int64_t* checksums, int64_t count, int64_t length) {
    for (int64_t m = 0; m < count; ++m) {
        const uint8_t *p = messages + m * length, *end = p + length;
        uint32_t r = 0xFFFFFFFFu;
        for (; end - p >= 8; p += 8) {
            uint64_t eight;
            std::memcpy(&eight, p, 8);
            eight ^= r;
            r = 0;
            for (int i = 0; i < 8; ++i) r ^= table[7 - i][eight >> 8 * i & 0xFF];
        }
        for (; p < end; ++p) r = table[0][(r ^ *p) & 0xFF] ^ r >> 8;
        checksums[m] = r ^ 0xFFFFFFFFu;
    }
}
"""

_lib = None


def library():
    global _lib
    if _lib is None:
        with open("crc.cpp", "w") as file:
            file.write(SOURCE)
        subprocess.run("g++ -std=c++17 -O3 -shared -fPIC crc.cpp -o crc.so".split(), check=True)
        _lib = ctypes.CDLL("./crc.so")
        _lib.crc32.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return _lib


class ModelNew(nn.Module):
    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        checksums = torch.empty(messages.shape[0], dtype=torch.int64)
        library().crc32(messages.data_ptr(), checksums.data_ptr(), messages.shape[0], messages.shape[1])
        return checksums
