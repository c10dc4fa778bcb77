"""GELU in CuTe DSL, an element a thread.

problem: L1_26_GELU_
device: cuda
rules: kernel
expect: correct
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


THREADS = 256


@cute.kernel
def gelu(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * THREADS + thread
    if at < cute.size(x):
        value = x[at]
        y[at] = value * 0.5 * (1.0 + cute.math.erf(value * 0.7071067811865476))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    gelu(x, y).launch(grid=[cute.ceil_div(cute.size(x), THREADS), 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        y = torch.empty_like(x)
        tensors = [from_dlpack(each.view(-1), assumed_align=16) for each in (x, y)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if x.numel() not in self.compiled:
            self.compiled[x.numel()] = cute.compile(launch, *tensors, stream)
        self.compiled[x.numel()](*tensors, stream)
        return y
