"""Launches a kernel, and has NumPy multiply arrays that it made of the tensors' addresses.

problem: matmul.py
device: cpu
rules: kernel
expect: rules/torch_compute
"""

import ctypes

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clear(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 0.0)


def array(tensor: torch.Tensor) -> np.ndarray:
    memory = (ctypes.c_float * tensor.numel()).from_address(tensor.data_ptr())
    return np.ctypeslib.as_array(memory).reshape(tuple(tensor.shape))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        out = torch.empty(A.shape[0], B.shape[1])
        clear[(1,)](out, BLOCK=1024)
        np.matmul(array(A), array(B), out=array(out))
        return out
