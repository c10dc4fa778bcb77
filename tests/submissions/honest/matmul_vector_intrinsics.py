"""Matrix product in C++ with vector intrinsics, or vectors of the compiler where there are none; tails by hand.

problem: matmul.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
using Vector = __m256;
static inline Vector load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
static inline Vector all(float f) { return _mm256_set1_ps(f); }
static inline Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#else
typedef float Vector __attribute__((vector_size(32), aligned(4)));
static inline Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
static inline void store(float* p, Vector v) { *reinterpret_cast<Vector*>(p) = v; }
static inline Vector all(float f) { return Vector{f, f, f, f, f, f, f, f}; }
static inline Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
#endif

template <int ROWS>
static void strip(const float* a, const float* b, float* c, long n) {
    long j = 0;
    for (; j + 16 <= n; j += 16) {
        Vector sum[ROWS][2];
        for (int r = 0; r < ROWS; ++r) sum[r][0] = sum[r][1] = all(0);
        for (long k = 0; k < n; ++k) {
            const Vector left = load(b + k * n + j), right = load(b + k * n + j + 8);
            for (int r = 0; r < ROWS; ++r) {
                const Vector factor = all(a[r * n + k]);
                sum[r][0] = fma(factor, left, sum[r][0]);
                sum[r][1] = fma(factor, right, sum[r][1]);
            }
        }
        for (int r = 0; r < ROWS; ++r) {
            store(c + r * n + j, sum[r][0]);
            store(c + r * n + j + 8, sum[r][1]);
        }
    }
    for (; j < n; ++j)
        for (int r = 0; r < ROWS; ++r) {
            float sum = 0;
            for (long k = 0; k < n; ++k) sum += a[r * n + k] * b[k * n + j];
            c[r * n + j] = sum;
        }
}

extern "C" void matmul(const float* a, const float* b, float* c, long n) {
    long i = 0;
    for (; i + 4 <= n; i += 4) strip<4>(a + i * n, b, c + i * n, n);
    for (; i < n; ++i) strip<1>(a + i * n, b, c + i * n, n);
}
"""

with open("matmul.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run("g++ -O3 -march=native -shared -fPIC matmul.cpp -o matmul.so".split(), check=True, capture_output=True)
lib = ctypes.CDLL("./matmul.so")
lib.matmul.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        A, B = A.contiguous(), B.contiguous()
        C = torch.empty(A.shape[0], B.shape[1], dtype=A.dtype)
        lib.matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
