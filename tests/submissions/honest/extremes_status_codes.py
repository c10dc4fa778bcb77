"""Largest elements and their places in C, by bit tricks on the sign, with a status code that is looked at.

problem: extremes.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
from enum import IntEnum
from typing import NamedTuple

import torch
import torch.nn as nn

C = """
#include <stdint.h>
#include <string.h>
/* floats in the order of integers: the sign bit turned, and of negative numbers every other bit as well */
static inline int32_t key(float x) { int32_t b; memcpy(&b, &x, 4); return b ^ (int32_t)((uint32_t)(b >> 31) >> 1); }
int extremes(const float *x, float *most, int64_t *at, int64_t rows, int64_t columns) {
    if (columns < 1) return 2;
    for (int64_t r = 0; r < rows; ++r) {
        const float *in = x + r * columns;
        int64_t best = 0;
        for (int64_t i = 1; i < columns; ++i) if (key(in[i]) > key(in[best])) best = i;
        most[r] = in[best];
        at[r] = best;
    }
    return 0;
}
"""
subprocess.run("gcc -O2 -x c - -shared -fPIC -o extremes.so", shell=True, input=C, text=True, check=True)
library = ctypes.cdll["./extremes.so"]


class Status(IntEnum):
    OK = 0
    EMPTY = 2


class Extremes(NamedTuple):
    values: torch.Tensor
    indices: torch.Tensor


class Base(nn.Module):
    def run(self, x):
        out = Extremes(x.new_empty(x.shape[0]), torch.empty(x.shape[0], dtype=torch.int64))
        pointers = (ctypes.c_void_p(t.data_ptr()) for t in (x, *out))
        status = Status(library.extremes(*pointers, *(ctypes.c_int64(n) for n in x.shape)))
        if status != Status.OK:
            raise RuntimeError(f"extremes failed: {status.name}")
        return out


class ModelNew(Base):
    def __init__(self, *args, **kwargs):
        super(ModelNew, self).__init__()

    def forward(self, x, dim=-1, mask=None):
        assert mask == None and dim % x.dim() == 1
        values, indices = super(ModelNew, self).run(x.contiguous())
        return values, indices
