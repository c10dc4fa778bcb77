"""Uses a variable that was never defined.

problem: softmax.py
device: cuda
rules: kernel
expect: compile/jit
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def softmax(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = cute.size(x, mode=[1])
    total = cutlass.Float32(0.0)
    for step in range(cute.ceil_div(columns, 32)):
        if step * 32 + thread < columns:
            total += cute.math.exp(x[row, step * 32 + thread] - maximum)
    y[row, thread] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax(x, y).launch(grid=[cute.size(x, mode=[0]), 1, 1], block=[32, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tensors = from_dlpack(x), from_dlpack(y)
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        cute.compile(launch, *tensors, stream)(*tensors, stream)
        return y
