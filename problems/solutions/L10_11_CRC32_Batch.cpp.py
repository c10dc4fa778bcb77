"""Four bytes per step, with tables of the remainders of bytes 1, 2 and 3 places on (slicing by four)."""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void run(const uint8_t* messages, const int64_t* table, int64_t* out, int64_t count, int64_t length) {
    uint32_t tables[4][256];
    for (int i = 0; i < 256; ++i) tables[0][i] = uint32_t(table[i]);
    for (int k = 1; k < 4; ++k)
        for (int i = 0; i < 256; ++i) tables[k][i] = tables[0][tables[k - 1][i] & 255] ^ tables[k - 1][i] >> 8;
    #pragma omp parallel for
    for (int64_t message = 0; message < count; ++message) {
        const uint8_t* bytes = messages + message * length;
        uint32_t r = ~0u, word;
        int64_t i = 0;
        for (; i + 4 <= length; i += 4) {
            std::memcpy(&word, bytes + i, 4);
            r ^= word;
            r = tables[3][r & 255] ^ tables[2][r >> 8 & 255] ^ tables[1][r >> 16 & 255] ^ tables[0][r >> 24];
        }
        for (; i < length; ++i) r = tables[0][(r ^ bytes[i]) & 255] ^ r >> 8;
        out[message] = uint32_t(~r);
    }
}
"""


def build() -> ctypes.CDLL:
    Path("kernel.cpp").write_text(SOURCE)
    options = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, "kernel.cpp", "-o", "kernel.so"], check=True, capture_output=True, text=True)
    return ctypes.CDLL("./kernel.so")


lib = build()
lib.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.empty(256, dtype=torch.int64))

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        count, length = messages.shape
        out = self.table.new_empty(count)
        lib.run(messages.data_ptr(), self.table.data_ptr(), out.data_ptr(), count, length)
        return out
