"""Causal depthwise convolution along time, followed by SiLU, that continues an earlier piece of the sequence.

    s[b, d, t] = `bias`[d] + sum over j < width of `weight`[d, j] * x[b, d, t - (width - 1) + j]
    y[b, d, t] = s[b, d, t] / (1 + exp(-s[b, d, t]))

where x[b, d, -i] = state[b, d, width - 1 - i] for i = 1 ... width - 1: state holds the samples before the first, in
order of time. x and y are (batch_size, dim, seq_len), state is (batch_size, dim, width - 1), weight (dim, width), bias
(dim,), all float32 and contiguous, time varies fastest. seq_len may be smaller than width. `forward` takes (x, state).
The constructor takes dim and width. All four sizes vary between cases.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4
dim = 4096
seq_len = 4096
width = 4

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "dim": 256, "seq_len": 1000},
    "odd": {"batch_size": 3, "dim": 63, "seq_len": 509, "width": 6},
    "short": {"batch_size": 64, "dim": 512, "seq_len": 1},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 1, "dim": 131, "seq_len": 787, "width": 3}}
TAGS: tuple[str, ...] = ("conv", "activation", "fused")


class Model(nn.Module):
    def __init__(self, dim: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(0.5 * torch.randn(dim, width))
        self.bias = nn.Parameter(0.5 * torch.randn(dim))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        padded = torch.cat((state, x), dim=2)
        return F.silu(F.conv1d(padded, self.weight[:, None], self.bias, groups=x.shape[1]))


def get_inputs() -> list[torch.Tensor]:
    return [1.5 * torch.randn(batch_size, dim, seq_len), 1.5 * torch.randn(batch_size, dim, width - 1)]


def get_init_inputs() -> list:
    return [dim, width]
