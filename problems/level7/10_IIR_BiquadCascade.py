"""Recursive filters of second order (biquads) in a chain, with their own coefficients in every channel.

    u_0 = x,    y = u_sections,    and for every channel c, section s and sample t, with b = feedforward, a = feedback:
    u_{s+1}[c, t] = b[c, s, 0] u_s[c, t] + b[c, s, 1] u_s[c, t-1] + b[c, s, 2] u_s[c, t-2]
                    - a[c, s, 0] u_{s+1}[c, t-1] - a[c, s, 1] u_{s+1}[c, t-2]

Everything is 0 before t = 0. x and y are (channels, samples), float32, contiguous. The buffers `feedforward`
(channels, sections, 3) and `feedback` (channels, sections, 2), float32, are drawn by the constructor, which takes
channels and sections. All filters are stable: the poles are pairs r exp(+-i w) with 0.3 <= r <= 0.9 and 0.1 pi <= w <=
0.9 pi, so that a response has died away (below 1e-9) after a few hundred samples. channels, sections and samples vary
between cases.
The reference solves each recursion z_t = A z_{t-1} + w_t by doubling: after k steps z_t holds the last 2^k terms.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

channels = 1024
sections = 3
samples = 16384

CASES: dict[str, dict] = {
    "cpu": {"channels": 32, "samples": 4000},
    "odd": {"channels": 7, "sections": 5, "samples": 1023},
    "single": {"channels": 1, "sections": 4, "samples": 20000},
}
TAGS: tuple[str, ...] = ("scan", "signal", "recurrent")


class Model(nn.Module):
    def __init__(self, channels: int, sections: int):
        super().__init__()
        radius = 0.3 + 0.6 * torch.rand(channels, sections)
        angle = math.pi * (0.1 + 0.8 * torch.rand(channels, sections))
        square = radius**2
        # the recursion's gain for white noise is the inverse of this, so that every section keeps the signal's size
        scale = torch.sqrt((1 - square) * (1 - 2 * square * torch.cos(2 * angle) + square**2) / (1 + square))
        numerator = F.normalize(torch.randn(channels, sections, 3), dim=-1)
        self.register_buffer("feedforward", numerator * scale[..., None])
        self.register_buffer("feedback", torch.stack([-2 * radius * torch.cos(angle), square], dim=-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for section in range(self.feedback.shape[1]):
            x = biquad(x, self.feedforward[:, section], self.feedback[:, section])
        return x


def biquad(x: torch.Tensor, b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """One section over all channels: x (channels, samples), b (channels, 3), a (channels, 2)."""
    before = F.pad(x, (2, 0))
    driven = b[:, :1] * x + b[:, 1:2] * before[:, 1:-1] + b[:, 2:] * before[:, :-2]
    state = torch.stack([driven, torch.zeros_like(driven)], dim=1)  # (y_t, y_{t-1}) of the terms so far
    power = torch.stack([-a, torch.ones_like(a)], dim=1)
    power[:, 1, 1] = 0
    step = 1
    while step < x.shape[1]:
        state[..., step:] += power @ state[..., :-step]
        power = power @ power
        step *= 2
    return state[:, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(channels, samples)]


def get_init_inputs() -> list:
    return [channels, sections]
