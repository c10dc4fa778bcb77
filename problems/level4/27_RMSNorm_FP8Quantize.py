"""Adds the residual, normalises by the root mean square, and quantizes each row to 8-bit floats. Three outputs.

    s[t, i] = x[t, i] + residual[t, i]
    n[t, i] = s[t, i] / sqrt(1e-5 + mean over j of s[t, j]^2) * weight[i]
    scale[t] = max over i of abs(n[t, i]) / 448
    y[t, i] = n[t, i] / scale[t], rounded to nearest even in float8_e4m3fn

x, residual and s are (num_tokens, hidden_size), bfloat16; the parameter `weight` is (hidden_size,), bfloat16; y is
(num_tokens, hidden_size), float8_e4m3fn; scale is (num_tokens, 1), float32; all contiguous. `forward` takes (x,
residual) and returns (y, scale, s). The reference rounds s to bfloat16 and goes on from there in float32. The
constructor takes hidden_size. Both sizes vary between cases. The timed sizes are those of `input_layernorm` of
Llama-3.1-8B (FP8-dynamic) for 16384 tokens.
"""

import torch
import torch.nn as nn

num_tokens = 16384
hidden_size = 4096

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 400, "hidden_size": 768},
    "odd": {"num_tokens": 127, "hidden_size": 1021},
    "single": {"num_tokens": 1, "hidden_size": 8192},
}
HIDDEN: dict[str, dict] = {"other": {"num_tokens": 53, "hidden_size": 1544}}
BASELINE = "../baselines/rms_norm_fp8_quantize.py"
TAGS: tuple[str, ...] = ("normalization", "fused", "quantized")


class Model(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter((1 + 0.2 * torch.randn(hidden_size)).bfloat16())

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        s = x + residual
        wide = s.to(torch.promote_types(s.dtype, torch.float32))
        n = wide * torch.rsqrt(1e-5 + wide.square().mean(dim=1, keepdim=True)) * self.weight
        scale = n.abs().amax(dim=1, keepdim=True) / 448
        return (n / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale, s


def get_inputs() -> list[torch.Tensor]:
    # Some channels of the residual stream are far larger than others, and more so in some rows.
    shape = (num_tokens, hidden_size)
    spread = torch.exp(torch.rand(num_tokens, 1) * torch.randn(hidden_size))
    return [torch.randn(shape).bfloat16(), (2 * torch.randn(shape) * spread).bfloat16()]


def get_init_inputs() -> list:
    return [hidden_size]
