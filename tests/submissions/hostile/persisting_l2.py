"""Asks the L2 cache to keep its inputs whatever comes, so that they outlast its being flushed.

problem: row_norms.py
device: cuda
rules: kernel
expect: no gain
"""

import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0, eviction_policy="evict_last")
        total += value * value
    tl.store(out + row, tl.sqrt(tl.sum(total, axis=0)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(6, ctypes.c_size_t(1 << 30))  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        norms[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
