"""Softmax in C++ behind a package of helpers that the submission writes to its folder and imports.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import importlib
import sys
from pathlib import Path

import torch
import torch.nn as nn

HERE = Path(__file__).resolve().parent
package = HERE / "softmax_helpers"
package.mkdir(exist_ok=True)
(package / "__init__.py").write_text("from .building import build\n")
(package / "building.py").write_text('''
import ctypes
import subprocess
import tempfile
from pathlib import Path


def build(source: str, *names: str) -> ctypes.CDLL:
    """Compiles C++ and declares functions of two pointers and two lengths."""
    folder = Path(tempfile.mkdtemp(prefix="build-"))
    (folder / "code.cpp").write_text(source)
    command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", "code.cpp", "-o", "code.so"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    library = ctypes.CDLL(str(folder / "code.so"))
    for name in names:
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    return library
''')
sys.path.insert(0, str(HERE))
importlib.invalidate_caches()

from softmax_helpers import build  # noqa: E402

library = build(
    r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        for (long i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }
}
""",
    "softmax",
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        library.softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
