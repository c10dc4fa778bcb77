"""The first product of a mixture of experts in 8-bit floating point, on tokens sorted by expert.

    y[t, n] = x_scale[t] * weight_scale[e, n] * sum over k of x[t, k] * weight[e, n, k]

for offsets[e] <= t < offsets[e + 1].

x is (num_rows, K), float8_e4m3fn; x_scale is (num_rows, 1), float32, positive; y is (num_rows, N), bfloat16; the buffer
`weight` is (num_experts, N, K), float8_e4m3fn; the buffer `weight_scale` is (num_experts, N), float32, positive;
offsets is (num_experts + 1,), int32, from 0 to num_rows, never falling: experts have very different numbers of rows,
and some have none. All are contiguous. `forward` takes (x, x_scale, offsets); the constructor takes num_experts, K and
N. The reference multiplies in bfloat16, which holds every 8-bit value, sums in float32, and rounds to bfloat16 before
and after the scales. The sizes vary between cases. The timed sizes are those of `gate_up_proj` of Qwen3-30B-A3B: 128
experts, 8 for each of 4096 tokens.
"""

import itertools

import torch
import torch.nn as nn

num_rows = 32768
num_experts = 128
K = 2048
N = 1536

CASES: dict[str, dict] = {
    "cpu": {"num_rows": 200, "num_experts": 8, "K": 256, "N": 192},
    "odd": {"num_rows": 133, "num_experts": 7, "K": 65, "N": 119},
    "few": {"num_rows": 8, "num_experts": 32, "K": 128, "N": 96},
}
HIDDEN: dict[str, dict] = {"other": {"num_rows": 171, "num_experts": 12, "K": 144, "N": 88}}
TAGS: tuple[str, ...] = ("matmul", "moe", "quantized", "irregular")

DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self, num_experts: int, K: int, N: int):
        super().__init__()
        weight = (100 * torch.randn(num_experts, N, K)).clamp(-448, 448)
        self.register_buffer("weight", weight.to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", 1e-4 * (1 + torch.rand(num_experts, N)))

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if x.dtype == torch.float64 else torch.bfloat16
        y = torch.empty(x.shape[0], self.weight.shape[1], dtype=wide, device=x.device)
        ends = offsets.tolist()
        for expert, (first, end) in enumerate(itertools.pairwise(ends)):
            product = x[first:end].to(wide) @ self.weight[expert].to(wide).T
            y[first:end] = product * x_scale[first:end] * self.weight_scale[expert]
        return y


def get_inputs() -> list[torch.Tensor]:
    popularity = torch.softmax(torch.randn(num_experts), dim=0)
    expert = torch.multinomial(popularity, num_rows, replacement=True).sort().values
    offsets = torch.searchsorted(expert, torch.arange(num_experts + 1, device=expert.device))
    x = (100 * torch.randn(num_rows, K)).clamp(-448, 448).to(torch.float8_e4m3fn)
    return [x, 0.005 * (1 + torch.rand(num_rows, 1)), offsets.int()]


def get_init_inputs() -> list:
    return [num_experts, K, N]
