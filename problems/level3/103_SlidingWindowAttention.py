"""Causal attention to a sliding window of keys, with a learned sink for each head, in float16.

    s[i, j] = q[b, h, i] . k[b, h, j] / sqrt(head_dim)
    o[b, h, i] = sum over j of exp(s[i, j]) * v[b, h, j] / (exp(sinks[h]) + sum over j of exp(s[i, j]))

where j runs over the window i - window < j <= i (and j >= 0). The sink takes part of the weight and has no value.
Scores and sinks may be large, so their maximum must be subtracted before the exponentials. q, k, v and o are
(batch_size, num_heads, seq_len, head_dim), float16; the parameter `sinks` is (num_heads,), float32; all contiguous.
The constructor takes num_heads and window. The reference computes in float32 and rounds once, at the end. All five
sizes vary between cases; the window may exceed the sequence.
"""

import math

import torch
import torch.nn as nn

batch_size = 2
num_heads = 4
seq_len = 4096
head_dim = 64
window = 256

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1, "num_heads": 4, "seq_len": 500, "window": 60},
    "odd": {"batch_size": 3, "num_heads": 5, "seq_len": 77, "head_dim": 33, "window": 19},
    "all": {"batch_size": 1, "num_heads": 3, "seq_len": 100, "head_dim": 128, "window": 128},
}
TAGS: tuple[str, ...] = ("attention",)

# Not the others: scores reach 10^2 and more, so that the sinks no longer count and near ties would be settled by
# rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self, num_heads: int, window: int):
        super().__init__()
        self.sinks = nn.Parameter(4 + torch.randn(num_heads))
        self.window = window

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
        place = torch.arange(q.shape[2], device=q.device)
        distance = place[:, None] - place
        scores = scores.masked_fill((distance < 0) | (distance >= self.window), float("-inf"))
        sinks = self.sinks.to(wide)[:, None, None].expand(*scores.shape[:3], 1)
        weights = torch.softmax(torch.cat((scores, sinks), dim=-1), dim=-1)[..., :-1]
        return (weights @ v.to(wide)).to(q.dtype)


def get_inputs() -> list[torch.Tensor]:
    # Queries are wide, so that a few keys have most of the weight and outputs do not average away.
    shape = (batch_size, num_heads, seq_len, head_dim)
    q, k, v = (torch.randn(shape) for _ in range(3))
    return [(2 * q).half(), k.half(), v.half()]


def get_init_inputs() -> list:
    return [num_heads, window]
