"""Run-length encoding; the three outputs are slices and views of one buffer.

problem: L9_12_RunLengthEncode
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import pathlib
import subprocess

import torch
from torch import nn, Tensor

HERE = pathlib.Path(__file__).resolve().parent
(HERE / "rle.c").write_text("""
#include <stdint.h>
#include <string.h>
/* two-pointer walk: begin of run, end of run */
int64_t rle(const int32_t *in, int64_t n, int32_t *values, int32_t *lengths) {
    int64_t runs = 0, begin = 0;
    while (begin < n) {
        int64_t end = begin + 1;
        while (end < n && in[end] == in[begin]) ++end;
        values[runs] = in[begin];
        lengths[runs++] = (int32_t)(end - begin);
        begin = end;
    }
    memset(values + runs, 0, (n - runs) * sizeof *values);
    memset(lengths + runs, 0, (n - runs) * sizeof *lengths);
    return runs;
}
""")
subprocess.run(f"gcc -O2 -shared -fPIC {HERE / 'rle.c'} -o {HERE / 'librle.so'}", shell=True, check=True)
_dll = ctypes.cdll[str(HERE / "librle.so")]
_dll.rle.restype = ctypes.c_int64


class ModelNew(nn.Module):
    def forward(self, input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = input.numel()
        both = torch.empty(2, n, dtype=torch.int32)
        values, lengths = both.unbind(0)
        runs = _dll.rle(
            ctypes.c_void_p(input.data_ptr()), ctypes.c_int64(n),
            ctypes.c_void_p(values.data_ptr()), ctypes.c_void_p(lengths.data_ptr()),
        )  # fmt: skip
        count = torch.full((), runs, dtype=torch.int64)
        return (values, lengths, count)
