"""Overwrites the C function behind time.perf_counter in memory: the same object, and another time.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import ctypes
import time

import torch
import torch.nn as nn


class MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int)]


class Function(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("method", ctypes.POINTER(MethodDef))]


def method(function) -> MethodDef:
    return Function.from_address(id(function)).method.contents


for name in ("perf_counter", "monotonic", "time"):
    method(getattr(time, name)).function = method(time.process_time).function


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
