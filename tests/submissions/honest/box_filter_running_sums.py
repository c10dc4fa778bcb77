"""Box filter by running sums along both directions, float32 throughout: each step adds one pixel and takes one away.

problem: L6_7_BoxFilter
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import subprocess
from pathlib import Path

import torch
import torch.nn as nn

_SRC = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void box(const float *in, float *out, int64_t h, int64_t w, int64_t radius) {
    float *sums = calloc(w, sizeof(float));
    const float scale = 1.0f / ((2 * radius + 1) * (2 * radius + 1));
    for (int64_t i = 0; i < radius && i < h; ++i)
        for (int64_t j = 0; j < w; ++j) sums[j] += in[i * w + j];
    for (int64_t i = 0; i < h; ++i) {
        if (i + radius < h) for (int64_t j = 0; j < w; ++j) sums[j] += in[(i + radius) * w + j];
        if (i - radius > 0) for (int64_t j = 0; j < w; ++j) sums[j] -= in[(i - radius - 1) * w + j];
        float run = 0;
        for (int64_t j = 0; j < radius && j < w; ++j) run += sums[j];
        for (int64_t j = 0; j < w; ++j) {
            if (j + radius < w) run += sums[j + radius];
            if (j - radius > 0) run -= sums[j - radius - 1];
            out[i * w + j] = run * scale;
        }
    }
    free(sums);
}
"""


def _build(so="box.so"):
    Path("box.c").write_text(_SRC)
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", so, "box.c"], check=True)
    return ctypes.CDLL(Path(so).absolute().as_posix())


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int = 11) -> None:
        super().__init__()
        self.radius = kernel_size // 2
        self.lib = _build()

    def forward(self, image):
        h, w = image.shape
        out = torch.empty((h, w))
        self.lib.box(
            *[ctypes.c_void_p(t.data_ptr()) for t in (image, out)], *map(ctypes.c_int64, (h, w, self.radius))
        )
        return out
