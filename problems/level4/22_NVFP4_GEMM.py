"""Linear layer with weights in NVFP4: 4-bit floats, an 8-bit scale for each 16 of them, and one scale for all.

    y[m, n] = global_scale * sum over k of x[m, k] * scales[n, k // 16] * e2m1(code[n, k])
    code[n, 2 i] = the low four bits of weight_packed[n, i],    code[n, 2 i + 1] = its high four bits

e2m1 has a sign bit (8), then the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 for the codes 0 to 7. x is (M, K) and y is
(M, N), bfloat16; the buffer `weight_packed` is (N, K / 2), uint8, of any values; the buffer `scales` is (N, K / 16),
float8_e4m3fn, positive; the buffer `global_scale` is a float32 scalar of shape (). All are contiguous. The constructor
takes K (a multiple of 16) and N. bfloat16 holds every product of scale and weight; the reference sums in float32, and
rounds to bfloat16 before and after the last scale. All three sizes vary between cases. The timed sizes are those of
`qkv_proj` of Llama-3.3-70B (FP4) with 64 tokens.
"""

import torch
import torch.nn as nn

M = 64
K = 8192
N = 10240

CASES: dict[str, dict] = {
    "cpu": {"M": 48, "K": 512, "N": 384},
    "odd": {"M": 61, "K": 272, "N": 131},
    "single": {"M": 1, "K": 1024, "N": 512},
}
HIDDEN: dict[str, dict] = {"other": {"M": 27, "K": 656, "N": 203}}
TAGS: tuple[str, ...] = ("matmul", "quantized")


class Model(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight_packed", torch.randint(0, 256, (N, K // 2), dtype=torch.uint8))
        self.register_buffer("scales", (16 + 200 * torch.rand(N, K // 16)).to(torch.float8_e4m3fn))
        self.register_buffer("global_scale", 1e-4 * (1 + torch.rand(())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = torch.stack((self.weight_packed & 15, self.weight_packed >> 4), dim=-1).flatten(1)
        power, last = ((code >> 1) & 3).float(), (code & 1).float()
        size = torch.where(power > 0, (2 + last) * torch.exp2(power - 2), last / 2)
        value = torch.where(code > 7, -size, size)
        weight = (value * self.scales.float().repeat_interleave(16, dim=1)).to(x.dtype)
        product = (x @ weight.T).to(torch.promote_types(x.dtype, torch.float32))
        return (product * self.global_scale).to(x.dtype)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K).bfloat16()]


def get_init_inputs() -> list:
    return [K, N]
