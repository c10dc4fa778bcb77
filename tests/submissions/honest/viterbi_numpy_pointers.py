"""Viterbi in C, called with NumPy's pointers; outputs are made by NumPy and handed over without a copy.

problem: L7_12_ViterbiDecoding
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess

import numpy as np
import torch
import torch.nn as nn
from numpy.ctypeslib import ndpointer

code = r"""
#include <stdint.h>
#include <stdlib.h>
void viterbi(const int32_t *em, const int32_t *tr, const int32_t *init, int64_t *path, int32_t *score,
             int64_t B, int64_t T, int64_t S) {
    int32_t *now = malloc(S * 4), *next = malloc(S * 4), *back = malloc(T * S * 4);
    for (int64_t b = 0; b < B; ++b) {
        const int32_t *e = em + b * T * S;
        for (int64_t j = 0; j < S; ++j) now[j] = init[j] + e[j];
        for (int64_t t = 1; t < T; ++t) {
            for (int64_t j = 0; j < S; ++j) {
                int32_t best = now[0] + tr[j], arg = 0;
                for (int64_t i = 1; i < S; ++i)
                    if (now[i] + tr[i * S + j] > best) best = now[i] + tr[i * S + j], arg = i;
                next[j] = best + e[t * S + j];
                back[t * S + j] = arg;
            }
            int32_t *swap = now; now = next; next = swap;
        }
        int64_t last = 0;
        for (int64_t j = 1; j < S; ++j) if (now[j] > now[last]) last = j;
        score[b] = now[last];
        for (int64_t t = T - 1; t >= 0; --t) { path[b * T + t] = last; last = t ? back[t * S + last] : 0; }
    }
    free(now); free(next); free(back);
}
"""
with open("viterbi.c", "w") as fh:
    fh.write(code)
subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "viterbi.c", "-o", "viterbi.so"], check=True)
lib = np.ctypeslib.load_library("viterbi", ".")
i32 = ndpointer(np.int32, flags="C_CONTIGUOUS")
lib.viterbi.argtypes = [i32, i32, i32, ndpointer(np.int64), i32] + [ctypes.c_int64] * 3
lib.viterbi.restype = None


class ModelNew(nn.Module):
    def forward(self, emissions, transitions, initial):
        B, T, S = emissions.shape
        path = np.empty((B, T), dtype=np.int64)
        score = np.empty(B, dtype=np.int32)
        lib.viterbi(emissions.numpy(), transitions.numpy(), initial.numpy(), path, score, B, T, S)
        return torch.from_numpy(path), torch.from_numpy(score)
