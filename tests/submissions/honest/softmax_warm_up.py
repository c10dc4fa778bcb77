"""Softmax in C++ that is warmed up in the constructor, logs what it does and guards the device and the layout.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import logging
import subprocess
import sys
import time

import torch
import torch.nn as nn

logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s", force=True)
log = logging.getLogger("softmax")
SOURCE = r"""
#include <cmath>
extern "C" int softmax(const float* x, float* y, long rows, long columns) {
    if (!x || !y || columns <= 0) return -1;
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        for (long i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }
    return 0;
}
"""


def build():
    with open("softmax.cpp", "w") as file:
        file.write(SOURCE)
    command = "g++ -O3 -march=native -Wall -Wextra -shared -fPIC softmax.cpp -o softmax.so"
    log.info("building: %s", command)
    done = subprocess.run(command.split(), check=True, capture_output=True, text=True)
    log.debug("the compiler said %r", done.stderr)
    lib = ctypes.CDLL("./softmax.so")
    lib.softmax.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    return lib


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lib = build()
        start = time.time()
        for _ in range(5):
            self(torch.randn(64, 256))
        log.info("warmed up in %.1f ms", 1e3 * (time.time() - start))

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cpu":
            raise RuntimeError(f"this kernel runs on a CPU, and x is on {x.device}")
        if x.dtype is not torch.float32 or not x.is_contiguous():
            x = x.to(torch.float32).contiguous()
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        code = self.lib.softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        if code:
            raise RuntimeError(f"softmax failed with code {code}")
        return out
