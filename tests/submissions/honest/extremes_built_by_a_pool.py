"""Two libraries built at once, by a process pool and by a thread pool, before the model is made.

problem: extremes.py
device: cpu
rules: kernel
expect: correct
"""

import ctypes
import multiprocessing as mp
import subprocess
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

import torch
import torch.nn as nn

SOURCES = {
    "largest": "for (i = 0; i < n; ++i) if (x[i] > best) best = x[i]; *(float*)y = best;",
    "where": "long at = 0; for (i = 0; i < n; ++i) if (x[i] > best) { best = x[i]; at = i; } *(long*)y = at;",
}
TEMPLATE = """
#include <math.h>
void NAME(const float *x, char *y, long rows, long n, long size) {
    for (long r = 0; r < rows; ++r, x += n, y += size) { float best = -INFINITY; long i; BODY }
}
"""


def build(name):
    source = TEMPLATE.replace("NAME", name).replace("BODY", SOURCES[name])
    subprocess.run(["gcc", "-O2", "-x", "c", "-", "-shared", "-fPIC", "-o", f"lib{name}.so"], input=source.encode(), check=True)
    return name


try:
    with ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
        built = [future.result() for future in as_completed([pool.submit(build, name) for name in SOURCES])]
except OSError as error:
    print("no processes:", error)
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(build, SOURCES))
libraries = {name: getattr(ctypes.CDLL(f"./lib{name}.so"), name) for name in built}


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, n = x.shape
        outputs = {"largest": x.new_empty(rows), "where": torch.empty(rows, dtype=torch.long, device=x.device)}
        for name, out in outputs.items():
            libraries[name](
                ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(rows), ctypes.c_long(n),
                ctypes.c_long(out.element_size()),
            )  # fmt: skip
        return outputs["largest"], outputs["where"]
