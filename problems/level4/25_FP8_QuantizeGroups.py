"""Quantizes activations to 8-bit floating point in groups of 128, as before each product of DeepSeek-V3. Two outputs.

With a[m, g] = the largest absolute value of x[m, k] over 128 g <= k < 128 (g + 1), and k < K:

    scale[m, g] = max(a[m, g], 1e-4) / 448
    y[m, k] = x[m, k] / scale[m, k // 128], rounded to nearest even in float8_e4m3fn

x is (M, K), bfloat16; y is (M, K), float8_e4m3fn; scale is (M, ceil(K / 128)), float32; all contiguous. `forward`
returns (y, scale). Division is in float32; no quotient exceeds 448 by more than rounding, and none may become NaN.
Both sizes vary between cases, and the last group may be incomplete. There are no parameters. The timed sizes are those
of the hidden states of DeepSeek-V3 for 16384 tokens.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

M = 16384
K = 7168
GROUP = 128

CASES: dict[str, dict] = {
    "cpu": {"M": 300, "K": 1024},
    "odd": {"M": 61, "K": 901},
    "single": {"M": 1, "K": 5000},
}
HIDDEN: dict[str, dict] = {"other": {"M": 77, "K": 1864}}
TAGS: tuple[str, ...] = ("elementwise", "quantized")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        k, wide = x.shape[1], torch.promote_types(x.dtype, torch.float32)
        groups = F.pad(x.to(wide), (0, -k % GROUP)).unflatten(1, (-1, GROUP))
        scale = groups.abs().amax(dim=-1).clamp(min=1e-4) / 448
        y = (groups / scale[..., None]).clamp(-448, 448).flatten(1)[:, :k]
        return y.contiguous().to(torch.float8_e4m3fn), scale


def get_inputs() -> list[torch.Tensor]:
    # Rows have different sizes, and so have channels.
    return [(torch.randn(M, K) * torch.exp(torch.randn(M, 1)) * (0.2 + torch.rand(K))).bfloat16()]


def get_init_inputs() -> list:
    return []
