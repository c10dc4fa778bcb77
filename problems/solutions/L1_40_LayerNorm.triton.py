"""Few samples, each far too long for one program: all programs share every sample, with a mean and a sum of squares each.

The first kernel writes them for each piece of a sample, the second puts them together (Chan's formula) and normalises.
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def measure(x, means, squares, size, pieces, BLOCK: tl.constexpr):
    piece, sample = tl.program_id(0), tl.program_id(1).to(tl.int64)
    index = piece * BLOCK + tl.arange(0, BLOCK)
    inside = index < size
    value = tl.load(x + sample * size + index, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / tl.minimum(size - piece * BLOCK, BLOCK)
    distance = tl.where(inside, value - mean, 0.0)
    tl.store(means + sample * pieces + piece, mean)
    tl.store(squares + sample * pieces + piece, tl.sum(distance * distance, axis=0))


@triton.jit
def normalise(
    x, y, weight, bias, means, squares, size, pieces, samples, eps, BLOCK: tl.constexpr, PIECES: tl.constexpr
):  # fmt: skip
    sample, piece = (tl.program_id(0) % samples).to(tl.int64), tl.program_id(0) // samples
    each = tl.arange(0, PIECES)
    counts = tl.maximum(tl.minimum(size - each * BLOCK, BLOCK), 0).to(tl.float32)
    theirs = tl.load(means + sample * pieces + each, mask=each < pieces, other=0.0)
    mean = tl.sum(theirs * (counts / size), axis=0)
    spread = tl.load(squares + sample * pieces + each, mask=each < pieces, other=0.0)
    variance = tl.sum(spread + counts * (theirs - mean) * (theirs - mean), axis=0) / size
    scale = 1.0 / tl.sqrt(variance + eps)

    index = piece * BLOCK + tl.arange(0, BLOCK)
    inside = index < size
    value = tl.load(x + sample * size + index, mask=inside)
    w = tl.load(weight + index, mask=inside)
    b = tl.load(bias + index, mask=inside)
    tl.store(y + sample * size + index, (value - mean) * scale * w + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, size = x.shape[0], self.ln.weight.numel()
        block = min(16384, triton.next_power_of_2(size))
        pieces = triton.cdiv(size, block)
        means = x.new_empty(samples, pieces)
        squares = x.new_empty(samples, pieces)
        y = torch.empty_like(x)
        measure[(pieces, samples)](x, means, squares, size, pieces, BLOCK=block, num_warps=16)
        # neighbours in the grid take the same piece of different samples: weight and bias come from the L2
        normalise[(pieces * samples,)](
            x, y, self.ln.weight, self.ln.bias, means, squares, size, pieces, samples, self.ln.eps, BLOCK=block,
            PIECES=triton.next_power_of_2(pieces), num_warps=16,
        )  # fmt: skip
        return y
