"""A tile of all features by neighbouring positions stays in registers between the sum of squares and the division."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rms_norm(x, y, features, positions, eps, FEATURES: tl.constexpr, POSITIONS: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64)
    feature = tl.arange(0, FEATURES)[:, None]
    position = tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS)[None, :]
    place = (sample * features + feature) * positions + position
    inside = (feature < features) & (position < positions)
    value = tl.load(x + place, mask=inside, other=0.0)
    mean = tl.sum(value * value, axis=0) / features
    tl.store(y + place, value / tl.sqrt(mean + eps)[None, :], mask=inside)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, features = x.shape[:2]
        positions = x.shape[2] * x.shape[3]
        y = torch.empty_like(x)
        rows = triton.next_power_of_2(features)
        columns = max(16, 8192 // rows)
        grid = (triton.cdiv(positions, columns), samples)
        rms_norm[grid](x, y, features, positions, self.eps, FEATURES=rows, POSITIONS=columns, num_warps=8)
        return y
