"""Softmax in C++ from modern Python: type aliases, dataclasses, enums, f-strings, walrus, match, partial, cache.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

from __future__ import annotations

import ctypes
import enum
import functools
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import torch
from torch import nn

Shape: TypeAlias = tuple[int, int]
Launch: TypeAlias = Callable[[int, int, int, int], None]


class Level(enum.StrEnum):
    SMALL = "-O2"
    LARGE = "-O3 -march=native"


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    level: Level
    unroll: int = 4
    flags: tuple[str, ...] = field(default=("-shared", "-fPIC"))

    @property
    def source(self) -> str:
        return f"""
#include <cmath>
extern "C" void {self.name}(const float* x, float* y, long rows, long columns) {{
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {{
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
        #pragma GCC unroll {self.unroll}
        for (long i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }}
}}
"""

    def build(self) -> Launch:
        (file := f"{self.name}.cpp")
        with open(file, "w") as out:
            print(self.source, file=out)
        subprocess.run(["g++", *self.level.split(), *self.flags, file, "-o", f"{self.name}.so"], check=True)
        function = getattr(ctypes.CDLL(f"./{self.name}.so"), self.name)
        function.argtypes = [*[ctypes.c_void_p] * 2, *[ctypes.c_long] * 2]
        return function


@functools.cache
def kernel_for(columns_are_many: bool) -> Launch:
    match columns_are_many:
        case True:
            return Kernel("softmax_wide", Level.LARGE, unroll=8).build()
        case False:
            return Kernel("softmax_narrow", Level.SMALL).build()


LIMIT: Final = 256


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, /) -> torch.Tensor:
        match tuple(x.shape):
            case (rows, columns) if (many := columns > LIMIT) or columns:
                launch = functools.partial(kernel_for(many), x.data_ptr())
            case shape:
                raise ValueError(f"{shape=} is not a matrix")
        launch((out := torch.empty_like(x)).data_ptr(), rows, columns)
        return out
