"""Matrix product by the fastest of three loop orders, which is found by timing them at the first call of each size.

problem: matmul.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import logging
import subprocess
import time

import torch
import torch.nn as nn

log = logging.getLogger("tuning")
logging.basicConfig(level=logging.INFO)

LOOPS = r"""
#include <cstring>
using Size = long;
#define KERNEL(NAME) extern "C" void NAME(const float* a, const float* b, float* c, Size n)

KERNEL(rows_outside) {
    std::memset(c, 0, n * n * sizeof(float));
    for (Size i = 0; i < n; ++i)
        for (Size k = 0; k < n; ++k)
            for (Size j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

KERNEL(depth_outside) {
    std::memset(c, 0, n * n * sizeof(float));
    for (Size k = 0; k < n; ++k)
        for (Size i = 0; i < n; ++i)
            for (Size j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

KERNEL(tiles) {
    const Size T = 64;
    std::memset(c, 0, n * n * sizeof(float));
    for (Size kk = 0; kk < n; kk += T)
        for (Size i = 0; i < n; ++i)
            for (Size k = kk; k < (kk + T < n ? kk + T : n); ++k)
                for (Size j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
"""

with open("loops.cpp", "w") as file:
    file.write(LOOPS)
subprocess.run("g++ -O3 -march=native -shared -fPIC loops.cpp -o loops.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./loops.so")
VARIANTS = [lib.rows_outside, lib.depth_outside, lib.tiles]
for variant in VARIANTS:
    variant.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
best: dict[int, int] = {}


def seconds(variant: int, arguments: tuple) -> float:
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        VARIANTS[variant](*arguments)
        taken.append(time.perf_counter() - start)
    return min(taken)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        n = A.shape[0]
        C = torch.empty_like(A)
        arguments = (A.data_ptr(), B.data_ptr(), C.data_ptr(), n)
        if n not in best:
            times = [seconds(variant, arguments) for variant in range(len(VARIANTS))]
            best[n] = times.index(min(times))
            log.info("n = %d: variant %d of %s", n, best[n], [f"{t * 1e6:.0f} us" for t in times])
        VARIANTS[best[n]](*arguments)
        return C
