"""The selective scan of Mamba: one small linear recurrence for each channel, driven by the input.

For batch b, channel d and each state n < d_state, with h = 0 before the first token:

    delta[t] = softplus(dt[b, d, t] + `dt_bias`[d]),    softplus(z) = log(1 + exp(z))
    h[n, t] = exp(-delta[t] * exp(`A_log`[d, n])) * h[n, t - 1] + delta[t] * B[b, n, t] * u[b, d, t]
    y[b, d, t] = (`D`[d] * u[b, d, t] + sum over n of C[b, n, t] * h[n, t]) * silu(z[b, d, t])
    silu(x) = x / (1 + exp(-x))

u, dt, z and y are (batch_size, d_inner, seq_len), B and C are (batch_size, d_state, seq_len); the parameter `A_log` is
(d_inner, d_state), `D` and `dt_bias` are (d_inner,); all float32 and contiguous, time varies fastest. `forward` takes
(u, dt, B, C, z). The constructor takes d_inner and d_state. All four sizes vary between cases. The reference doubles
the reach of the recurrence in each of log2(seq_len) passes; a kernel can keep h in registers and never store it.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2
d_inner = 1024
d_state = 16
seq_len = 2048

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "d_inner": 32, "d_state": 8, "seq_len": 300},
    "odd": {"batch_size": 3, "d_inner": 37, "d_state": 5, "seq_len": 131},
    "long": {"batch_size": 1, "d_inner": 4, "d_state": 16, "seq_len": 5000},
}
TAGS: tuple[str, ...] = ("scan", "recurrent", "fused")

# No "wide": steps of 10^2 forget everything, and outputs of 10^10 are ruled by a few elements.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, d_inner: int, d_state: int):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1) * (0.5 + torch.rand(d_inner, d_state))))
        self.D = nn.Parameter(torch.randn(d_inner))
        self.dt_bias = nn.Parameter(torch.empty(d_inner).uniform_(-5, -1))

    def forward(
        self, u: torch.Tensor, dt: torch.Tensor, B: torch.Tensor, C: torch.Tensor, z: torch.Tensor
    ) -> torch.Tensor:
        delta = F.softplus(dt + self.dt_bias[:, None])[:, :, None]
        decay = torch.exp(-delta * self.A_log.exp()[:, :, None])
        h = delta * B[:, None] * u[:, :, None]
        reach = 1
        while reach < u.shape[2]:
            h = h + decay * F.pad(h[..., :-reach], (reach, 0))
            decay = decay * F.pad(decay[..., :-reach], (reach, 0))
            reach *= 2
        y = (C[:, None] * h).sum(dim=2) + self.D[:, None] * u
        return y * F.silu(z)


def get_inputs() -> list[torch.Tensor]:
    u, dt, z = (torch.randn(batch_size, d_inner, seq_len) for _ in range(3))
    B, C = (torch.randn(batch_size, d_state, seq_len) for _ in range(2))
    return [u, 0.5 * dt, B, C, 2 * z]


def get_init_inputs() -> list:
    return [d_inner, d_state]
