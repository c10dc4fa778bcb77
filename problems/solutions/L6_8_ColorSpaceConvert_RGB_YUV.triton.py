"""Three strided reads that share their cache lines, nine products, three strided writes: one pass, no matrix product."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def convert(rgb, matrix, yuv, count, BLOCK: tl.constexpr):
    pixel = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < count
    r = tl.load(rgb + 3 * pixel, mask=inside, other=0.0)
    g = tl.load(rgb + 3 * pixel + 1, mask=inside, other=0.0)
    b = tl.load(rgb + 3 * pixel + 2, mask=inside, other=0.0)
    for a in tl.static_range(3):
        mixed = tl.load(matrix + 3 * a) * r + tl.load(matrix + 3 * a + 1) * g + tl.load(matrix + 3 * a + 2) * b
        tl.store(yuv + 3 * pixel + a, mixed, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("conversion_matrix", torch.empty(3, 3))

    def forward(self, rgb: torch.Tensor) -> torch.Tensor:
        yuv = torch.empty_like(rgb)
        count = rgb.shape[0] * rgb.shape[1]
        convert[(triton.cdiv(count, 2048),)](rgb, self.conversion_matrix, yuv, count, BLOCK=2048, num_warps=8)
        return yuv
