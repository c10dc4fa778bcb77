"""Sum and layer norm of a row in CuTe DSL; the rounded sum is read back from the output.

problem: L3_109_ResidualAddLayerNorm
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


@cute.jit
def block_sum(value: cutlass.Float32, scratch: cute.Tensor):
    value = cute.arch.warp_reduction_sum(value)
    warp = cute.arch.warp_idx()  # a shuffle: all lanes take part
    if cute.arch.lane_idx() == 0:
        scratch[warp] = value
    cute.arch.sync_threads()
    total = scratch[0]
    for i in cutlass.range_constexpr(1, THREADS // 32):
        total += scratch[i]
    cute.arch.sync_threads()
    return total


@cute.kernel
def add_layer_norm(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, s: cute.Tensor,
    eps: cutlass.Constexpr,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    scratch = cutlass.utils.SmemAllocator().allocate_tensor(
        cutlass.Float32, cute.make_layout(THREADS // 32), byte_alignment=16
    )
    columns = cute.size(x, mode=[1])
    steps = cute.ceil_div(columns, THREADS)
    total = cutlass.Float32(0.0)
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            both = x[row, column].to(cutlass.Float32) + residual[row, column].to(cutlass.Float32)
            rounded = both.to(cutlass.BFloat16)
            s[row, column] = rounded
            total += rounded.to(cutlass.Float32)
    mean = block_sum(total, scratch) / columns
    total = cutlass.Float32(0.0)
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            distance = s[row, column].to(cutlass.Float32) - mean
            total += distance * distance
    scale = 1.0 / cute.math.sqrt(block_sum(total, scratch) / columns + eps)
    for step in range(steps):
        column = step * THREADS + thread
        if column < columns:
            distance = s[row, column].to(cutlass.Float32) - mean
            value = distance * scale * weight[column].to(cutlass.Float32) + bias[column].to(cutlass.Float32)
            y[row, column] = value.to(cutlass.BFloat16)


@cute.jit
def launch(
    x: cute.Tensor, residual: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, s: cute.Tensor,
    eps: cutlass.Constexpr, stream: cuda.CUstream,
):  # fmt: skip
    add_layer_norm(x, residual, weight, bias, y, s, eps).launch(
        grid=[cute.size(x, mode=[0]), 1, 1], block=[THREADS, 1, 1], stream=stream
    )


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)
        self.compiled = {}

    def forward(self, x, residual):
        y, s = torch.empty_like(x), torch.empty_like(x)
        parts = x, residual, self.norm.weight.detach(), self.norm.bias.detach(), y, s
        tensors = [from_dlpack(each) for each in parts]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if x.shape not in self.compiled:
            self.compiled[x.shape] = cute.compile(launch, *tensors, self.norm.eps, stream)
        self.compiled[x.shape](*tensors, stream)
        return y, s
