"""Linear layer with weights in MXFP4: 4-bit floats, and one power of two for each 32 of them.

    y[m, n] = sum over k of x[m, k] * 2^(exponents[n, k // 32] - 127) * e2m1(code[n, k])
    code[n, 2 i] = the low four bits of weight_packed[n, i],    code[n, 2 i + 1] = its high four bits

e2m1 has a sign bit (8), then the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 for the codes 0 to 7. x is (M, K) and y is
(M, N), bfloat16; the buffer `weight_packed` is (N, K / 2), uint8, of any values; the buffer `exponents` is (N, K / 32),
uint8. All are contiguous. The constructor takes K (a multiple of 32) and N. bfloat16 holds every weight; the sum is
taken in float32 and rounded once. All three sizes vary between cases. The timed sizes are those of an expert's
`gate_up_proj` of gpt-oss-20b with 128 tokens.
"""

import torch
import torch.nn as nn

M = 128
K = 2880
N = 5760

CASES: dict[str, dict] = {
    "cpu": {"M": 48, "K": 512, "N": 384},
    "odd": {"M": 61, "K": 288, "N": 131},
    "single": {"M": 1, "K": 1024, "N": 512},
}
HIDDEN: dict[str, dict] = {"other": {"M": 27, "K": 672, "N": 203}}
TAGS: tuple[str, ...] = ("matmul", "quantized")


class Model(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight_packed", torch.randint(0, 256, (N, K // 2), dtype=torch.uint8))
        self.register_buffer("exponents", torch.randint(119, 125, (N, K // 32), dtype=torch.uint8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = torch.stack((self.weight_packed & 15, self.weight_packed >> 4), dim=-1).flatten(1)
        power, last = ((code >> 1) & 3).float(), (code & 1).float()
        size = torch.where(power > 0, (2 + last) * torch.exp2(power - 2), last / 2)
        value = torch.where(code > 7, -size, size)
        scale = torch.exp2(self.exponents.float() - 127).repeat_interleave(32, dim=1)
        return x @ (value * scale).to(x.dtype).T


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K).bfloat16()]


def get_init_inputs() -> list:
    return [K, N]
