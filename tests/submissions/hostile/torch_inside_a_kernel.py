"""Calls torch from the body of a Triton kernel, which the interpreter runs as any Python.

problem: row_norms.py
device: cpu
rules: kernel
expect: rules/torch_compute
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norms(x, out, rows, columns, BLOCK: tl.constexpr):
    pointer = tl.program_id(0)
    sneak(pointer)


kept = []


def sneak(_):
    x, out = kept
    out.copy_(x.square().sum(dim=1).sqrt())


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=x.device)
        kept[:] = x, out
        norms[(1,)](x, out, x.shape[0], x.shape[1], BLOCK=1024)
        return out
