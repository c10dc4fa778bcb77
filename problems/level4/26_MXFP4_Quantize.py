"""Quantizes activations to MXFP4: 4-bit floats, two in a byte, and one power of two for each 32. Two outputs.

With a[m, g] = the largest absolute value of x[m, k] over 32 g <= k < 32 (g + 1), and e[m, g] the integer for which
2^e <= a < 2^(e + 1):

    exponents[m, g] = e[m, g] - 2 + 127, and 0 where a[m, g] = 0
    code[m, k] = e2m1(x[m, k] * 2^(2 - e[m, g])), and 0 where a[m, g] = 0
    packed[m, i] = code[m, 2 i] + 16 * code[m, 2 i + 1]

e2m1(v) has the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 for the codes 0 to 7, plus 8 if v is negative. It is the nearest
of them; halfway between two, the one with an even code; and 6 for everything beyond. A v that is negative and rounds to
0 has the code 8. x is (M, K), bfloat16; packed is (M, K / 2) and exponents is (M, K / 32), uint8; all contiguous.
`forward` returns (packed, exponents). K is a multiple of 32. Both sizes vary between cases. There are no parameters.
The timed sizes are those of the hidden states of gpt-oss-120b for 32768 tokens.
"""

import torch
import torch.nn as nn

M = 32768
K = 2880

CASES: dict[str, dict] = {
    "cpu": {"M": 300, "K": 1024},
    "odd": {"M": 61, "K": 1056},
    "single": {"M": 1, "K": 8000},
}
HIDDEN: dict[str, dict] = {"other": {"M": 77, "K": 1888}}
TAGS: tuple[str, ...] = ("elementwise", "quantized")


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        groups = x.float().unflatten(1, (-1, 32))
        largest = groups.abs().amax(dim=-1, keepdim=True)
        exponent = torch.frexp(largest).exponent - 1
        size = torch.ldexp(groups.abs(), 2 - exponent)
        step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
        rounded = torch.round(size / step) * step  # to the even multiple, which has an even code
        below_two, below_four = 2 * rounded, rounded + 2
        code = torch.where(rounded <= 2, below_two, torch.where(rounded <= 4, below_four, 7.0))
        code = code.to(torch.uint8) + 8 * (groups < 0).to(torch.uint8)
        code = torch.where(largest > 0, code, torch.zeros_like(code)).flatten(1)
        exponents = torch.where(largest > 0, exponent + 125, 0).to(torch.uint8)
        return code[:, ::2] + 16 * code[:, 1::2], exponents.squeeze(-1)


def get_inputs() -> list[torch.Tensor]:
    return [(torch.randn(M, K) * torch.exp(torch.randn(M, 1))).bfloat16()]


def get_init_inputs() -> list:
    return []
