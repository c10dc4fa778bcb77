"""A gated linear unit in bfloat16 in Triton: both products in one autotuned kernel, float32 until the end.

problem: gate_bfloat16.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 64}, num_warps=4, num_stages=3),
        triton.Config({"BM": 128, "BN": 64, "BK": 64}, num_warps=8, num_stages=3),
        triton.Config({"BM": 128, "BN": 128, "BK": 32}, num_warps=8, num_stages=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def gated(x, gate, up, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    g = tl.zeros((BM, BN), dtype=tl.float32)
    u = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        inside = (n[None, :] < N) & (k[:, None] < K)
        left = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        g = tl.dot(left, tl.load(gate + n[None, :] * K + k[:, None], mask=inside, other=0.0), g)
        u = tl.dot(left, tl.load(up + n[None, :] * K + k[:, None], mask=inside, other=0.0), u)
    result = g * tl.sigmoid(g) * u
    tl.store(y + m[:, None] * N + n[None, :], result.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.gate = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (M, K), N = x.shape, self.up.out_features
        y = x.new_empty(M, N)

        def grid(meta):
            return triton.cdiv(N, meta["BN"]), triton.cdiv(M, meta["BM"])

        gated[grid](x, self.gate.weight, self.up.weight, y, M, N, K)
        return y
