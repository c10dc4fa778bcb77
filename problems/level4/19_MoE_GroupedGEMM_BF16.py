"""The first product of a mixture of experts, one matrix per expert, on tokens sorted by expert, in bfloat16.

    y[t] = weight[e] x[t]    for offsets[e] <= t < offsets[e + 1]

x is (num_rows, K) and y is (num_rows, N), bfloat16; the parameter `weight` is (num_experts, N, K), bfloat16; offsets is
(num_experts + 1,), int32, from 0 to num_rows, never falling: experts have very different numbers of rows, and some have
none. All are contiguous. The constructor takes num_experts, K and N. Sums are taken in float32 and rounded once. The
sizes vary between cases. The timed sizes are those of `gate_up_proj` of Qwen3-30B-A3B: 128 experts, 8 for each of 4096
tokens.
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
BASELINE = "../baselines/moe_grouped_gemm_bf16.py"
TAGS: tuple[str, ...] = ("matmul", "moe", "irregular")


class Model(nn.Module):
    def __init__(self, num_experts: int, K: int, N: int):
        super().__init__()
        self.weight = nn.Parameter((0.05 * torch.randn(num_experts, N, K)).bfloat16())

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        y = x.new_empty(x.shape[0], self.weight.shape[1])
        ends = offsets.tolist()
        for expert, (first, end) in enumerate(itertools.pairwise(ends)):
            torch.mm(x[first:end], self.weight[expert].T, out=y[first:end])
        return y


def get_inputs() -> list[torch.Tensor]:
    popularity = torch.softmax(torch.randn(num_experts), dim=0)
    expert = torch.multinomial(popularity, num_rows, replacement=True).sort().values
    offsets = torch.searchsorted(expert, torch.arange(num_experts + 1, device=expert.device))
    return [torch.randn(num_rows, K).bfloat16(), offsets.int()]


def get_init_inputs() -> list:
    return [num_experts, K, N]
