"""Least significant digit radix sort with two buffers that are kept between calls, keys biased by a bit trick.

problem: L9_4_RadixSort
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

lib_source = """
#include <cstdint>
#include <cstring>
#include <utility>
extern "C" void radix_sort(const long* in, long* out, unsigned* a, unsigned* b, long n) {
    for (long i = 0; i < n; ++i) a[i] = (unsigned)(int)in[i] ^ 0x80000000u;   // order of signed as of unsigned
    for (int shift = 0; shift < 32; shift += 11) {
        long count[2049] = {0};
        for (long i = 0; i < n; ++i) ++count[((a[i] >> shift) & 2047) + 1];
        for (int d = 0; d < 2048; ++d) count[d + 1] += count[d];
        for (long i = 0; i < n; ++i) b[count[(a[i] >> shift) & 2047]++] = a[i];
        std::swap(a, b);
    }
    for (long i = 0; i < n; ++i) out[i] = (long)(int)(a[i] ^ 0x80000000u);
}
"""


def compile_and_load(name, source):
    cpp, so = f"./{name}.cpp", f"./lib{name}.so"
    with open(cpp, mode="w", encoding="utf-8") as file:
        print(source, file=file)
    process = subprocess.Popen(["g++", "-O3", cpp, "-shared", "-fPIC", "-o", so], stderr=subprocess.PIPE)
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return ctypes.CDLL(so)


radix = compile_and_load("radix", lib_source)


class Workspace:
    """Scratch memory that grows and never shrinks."""

    def __init__(self):
        self.buffers = {}

    def get(self, name, numel, dtype):
        buffer = self.buffers.get(name)
        if buffer is None or buffer.numel() < numel:
            buffer = self.buffers[name] = torch.empty(numel, dtype=dtype)
        return buffer[:numel]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspace = Workspace()

    def forward(self, input):
        n = input.shape[0]
        a, b = (self.workspace.get(name, n, torch.int32) for name in "ab")
        out = self.workspace.get("out", n, torch.int64)
        radix.radix_sort(*(ctypes.c_void_p(t.data_ptr()) for t in (input, out, a, b)), ctypes.c_long(n))
        return out
