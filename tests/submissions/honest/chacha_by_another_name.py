"""ChaCha20 in C++ by a class of another name, which is given the one that is asked for at the end.

problem: L10_5_ChaCha20
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

CODE = r"""
#include <cstdint>
#define ROTL(a, b) (((a) << (b)) | ((a) >> (32 - (b))))
#define QR(a, b, c, d) a += b, d ^= a, d = ROTL(d, 16), c += d, b ^= c, b = ROTL(b, 12), \
                       a += b, d ^= a, d = ROTL(d, 8), c += d, b ^= c, b = ROTL(b, 7)
extern "C" void chacha20(const int64_t* constants, const int64_t* key, const int64_t* nonce, const int64_t* counter,
                         int64_t* out, int64_t blocks) {
    for (int64_t i = 0; i < blocks; ++i) {
        uint32_t s[16], x[16];
        for (int j = 0; j < 4; ++j) s[j] = constants[j];
        for (int j = 0; j < 8; ++j) s[4 + j] = key[j];
        s[12] = counter[i];
        for (int j = 0; j < 3; ++j) s[13 + j] = nonce[j];
        for (int j = 0; j < 16; ++j) x[j] = s[j];
        for (int round = 0; round < 10; ++round) {
            QR(x[0], x[4], x[8], x[12]); QR(x[1], x[5], x[9], x[13]);
            QR(x[2], x[6], x[10], x[14]); QR(x[3], x[7], x[11], x[15]);
            QR(x[0], x[5], x[10], x[15]); QR(x[1], x[6], x[11], x[12]);
            QR(x[2], x[7], x[8], x[13]); QR(x[3], x[4], x[9], x[14]);
        }
        for (int j = 0; j < 16; ++j) out[16 * i + j] = uint32_t(x[j] + s[j]);
    }
}
"""
with open("chacha.cpp", "w") as f:
    f.write(CODE)
command = "g++ -O3 -march=native -shared -fPIC chacha.cpp -o chacha.so"
subprocess.check_output(command, shell=True, stderr=subprocess.STDOUT)
chacha20 = ctypes.CDLL("./chacha.so").chacha20
P = ctypes.POINTER(ctypes.c_int64)


def as_pointer(t: torch.Tensor):
    return ctypes.cast(t.data_ptr(), P)


class ChaCha20(nn.Module):
    def __init__(self):
        super().__init__()
        words = [int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4)]
        self.register_buffer("constants", torch.tensor(words, dtype=torch.int64))

    def forward(self, key, nonce, counter):
        stream = counter.new_empty((counter.size(0), 16))
        chacha20(*map(as_pointer, (self.constants, key, nonce, counter, stream)), len(counter))
        return stream


ModelNew = ChaCha20
