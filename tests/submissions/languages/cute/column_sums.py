"""Sums over the middle dimension in CuTe DSL: a thread walks down a column.

problem: L1_47_Sum_reduction_over_a_dimension
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


THREADS = 128


@cute.kernel
def sum_middle(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    strip, sample, _ = cute.arch.block_idx()
    column = strip * THREADS + thread
    if column < cute.size(x, mode=[2]):
        first = cutlass.Float32(0.0)
        second = cutlass.Float32(0.0)
        rows = cute.size(x, mode=[1])
        for row in range(rows // 2):
            first += x[sample, 2 * row, column]
            second += x[sample, 2 * row + 1, column]
        if rows % 2 == 1:
            first += x[sample, rows - 1, column]
        y[sample, column] = first + second


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    strips = cute.ceil_div(cute.size(x, mode=[2]), THREADS)
    sum_middle(x, y).launch(grid=[strips, cute.size(x, mode=[0]), 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        if dim != 1:
            raise ValueError("the middle dimension is the one that is summed over")
        self.compiled = {}

    def forward(self, x):
        y = x.new_empty(x.shape[0], 1, x.shape[2])
        tensors = from_dlpack(x), from_dlpack(y.view(x.shape[0], x.shape[2]))
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if x.shape not in self.compiled:
            self.compiled[x.shape] = cute.compile(launch, *tensors, stream)
        self.compiled[x.shape](*tensors, stream)
        return y
