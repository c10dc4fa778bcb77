"""The activation of a gated MLP, quantized to 8-bit floats in groups of 128 for the next product. Two outputs.

    h[t, i] = silu(x[t, i]) * x[t, I + i],    silu(u) = u / (1 + exp(-u))
    scale[t, g] = max(1e-4, max over 128 g <= i < 128 (g + 1) of abs(h[t, i])) / 448
    y[t, i] = h[t, i] / scale[t, i // 128], rounded to nearest even in float8_e4m3fn

with I = intermediate_size. x is (num_tokens, 2 I), bfloat16: gate and up projection side by side; y is (num_tokens, I),
float8_e4m3fn; scale is (num_tokens, ceil(I / 128)), float32; all contiguous. `forward` returns (y, scale). The
reference computes in float32. Both sizes vary between cases, and the last group may be incomplete. There are no
parameters. The timed sizes are those of Qwen3-8B-FP8 for 8192 tokens.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_tokens = 8192
intermediate_size = 12288
GROUP = 128

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 200, "intermediate_size": 1024},
    "odd": {"num_tokens": 61, "intermediate_size": 901},
    "single": {"num_tokens": 1, "intermediate_size": 5000},
}
HIDDEN: dict[str, dict] = {"other": {"num_tokens": 77, "intermediate_size": 1864}}
TAGS: tuple[str, ...] = ("elementwise", "activation", "fused", "quantized")

# No "negative": the silu of numbers below -100 is 0.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "wide", "offset")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gate, up = x.to(torch.promote_types(x.dtype, torch.float32)).chunk(2, dim=1)
        size = gate.shape[1]
        groups = F.pad(F.silu(gate) * up, (0, -size % GROUP)).unflatten(1, (-1, GROUP))
        scale = groups.abs().amax(dim=-1).clamp(min=1e-4) / 448
        y = (groups / scale[..., None]).clamp(-448, 448).flatten(1)[:, :size]
        return y.contiguous().to(torch.float8_e4m3fn), scale


def get_inputs() -> list[torch.Tensor]:
    return [(1.5 * torch.randn(num_tokens, 2 * intermediate_size)).bfloat16()]


def get_init_inputs() -> list:
    return []
