"""Adds a layer's output to the residual stream and normalises the sum, in bfloat16. Two outputs.

    s[t, i] = x[t, i] + residual[t, i]
    y[t, i] = (s[t, i] - mean[t]) / sqrt(var[t] + 1e-5) * `norm.weight`[i] + `norm.bias`[i]

where mean[t] is the mean of s[t, .] and var[t] its biased variance. x, residual, s and y are (num_tokens, hidden_size),
`norm.weight` and `norm.bias` are (hidden_size,), all bfloat16 and contiguous. `forward` takes (x, residual) and returns
(y, s). The reference rounds s to bfloat16, and then computes y from that in float32 and rounds it once; taking y from
the sum before it is rounded is as good. The constructor takes hidden_size. Both sizes vary between cases.
"""

import torch
import torch.nn as nn

num_tokens = 20480
hidden_size = 8192

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 1000, "hidden_size": 768},
    "odd": {"num_tokens": 127, "hidden_size": 1021},
    "single": {"num_tokens": 1, "hidden_size": 12288},
}
HIDDEN: dict[str, dict] = {"other": {"num_tokens": 83, "hidden_size": 1531}}
BASELINE = "../baselines/residual_add_layer_norm.py"
TAGS: tuple[str, ...] = ("normalization", "fused")


class Model(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        s = x + residual
        return self.norm(s), s


def get_inputs() -> list[torch.Tensor]:
    shape = (num_tokens, hidden_size)
    return [torch.randn(shape).bfloat16(), (2 * torch.randn(shape) + 0.5).bfloat16()]


def get_init_inputs() -> list:
    return [hidden_size]
