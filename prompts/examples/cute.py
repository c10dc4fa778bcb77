import cuda.bindings.driver as cuda
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack
from torch import nn

THREADS = 256


@cute.kernel
def squared_difference(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < cute.size(out):
        difference = a[index] - b[index]
        out[index] = difference * difference


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    blocks = cute.ceil_div(cute.size(out), THREADS)
    squared_difference(a, b, out).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        tensors = [from_dlpack(each.view(-1), assumed_align=16) for each in (a, b, out)]
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        if out.numel() not in self.compiled:
            self.compiled[out.numel()] = cute.compile(launch, *tensors, stream)
        self.compiled[out.numel()](*tensors, stream)
        return out
