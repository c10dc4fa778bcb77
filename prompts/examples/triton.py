import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def squared_difference(a, b, out, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    difference = tl.load(a + index, mask=inside) - tl.load(b + index, mask=inside)
    tl.store(out + index, difference * difference, mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        count = out.numel()
        squared_difference[(triton.cdiv(count, 1024),)](a, b, out, count, BLOCK=1024)
        return out
