"""Calls `warp_idx`, a shuffle of the whole warp, in a branch that only one lane enters.

problem: L1_23_Softmax
device: cuda
rules: kernel
expect: runtime/timeout
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


THREADS = 256


@cute.jit
def block_sum(value: cutlass.Float32, scratch: cute.Tensor):
    value = cute.arch.warp_reduction_sum(value)
    if cute.arch.lane_idx() == 0:
        scratch[cute.arch.warp_idx()] = value
    cute.arch.sync_threads()
    total = scratch[0]
    for i in cutlass.range_constexpr(1, THREADS // 32):
        total += scratch[i]
    cute.arch.sync_threads()
    return total


@cute.jit
def block_max(value: cutlass.Float32, scratch: cute.Tensor):
    value = cute.arch.warp_reduction_max(value)
    if cute.arch.lane_idx() == 0:
        scratch[cute.arch.warp_idx()] = value
    cute.arch.sync_threads()
    largest = scratch[0]
    for i in cutlass.range_constexpr(1, THREADS // 32):
        largest = cute.arch.fmax(largest, scratch[i])
    cute.arch.sync_threads()
    return largest


@cute.kernel
def softmax(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    scratch = cutlass.utils.SmemAllocator().allocate_tensor(
        cutlass.Float32, cute.make_layout(THREADS // 32), byte_alignment=16
    )
    columns = cute.size(x, mode=[1])
    steps = cute.ceil_div(columns, THREADS)
    largest = -cutlass.Float32.inf
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            largest = cute.arch.fmax(largest, x[row, column])
    largest = block_max(largest, scratch)
    total = cutlass.Float32(0.0)
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            total += cute.math.exp(x[row, column] - largest)
    total = block_sum(total, scratch)
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            y[row, column] = cute.math.exp(x[row, column] - largest) / total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax(x, y).launch(grid=[cute.size(x, mode=[0]), 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        y = torch.empty_like(x)
        tensors = from_dlpack(x), from_dlpack(y)
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if x.shape not in self.compiled:
            self.compiled[x.shape] = cute.compile(launch, *tensors, stream)
        self.compiled[x.shape](*tensors, stream)
        return y
