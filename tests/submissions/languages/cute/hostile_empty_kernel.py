"""Launches a kernel that does nothing of use, and computes in torch by a name made up at run time.

problem: softmax.py
device: cuda
rules: kernel
expect: rules/torch_compute
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def nothing(scratch: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    scratch[thread] = 0.0


@cute.jit
def launch(scratch: cute.Tensor, stream: cuda.CUstream):
    nothing(scratch).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def forward(self, x):
        scratch = from_dlpack(torch.empty(32, device=x.device))
        launch(scratch, cuda.CUstream(torch.cuda.current_stream().cuda_stream))
        return getattr(torch, "soft" + "max")(x, dim=1)
