"""A linear layer and a ReLU in Triton whose weights are split and turned at the first call; a custom operator.

problem: linear.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, w, b, y, M, N, K, stride, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32) + tl.load(b + n, mask=n < N, other=0.0)[None, :]
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(w + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(y + m[:, None] * stride + n[None, :], tl.where(total > 0, total, 0.0), mask=inside)


@torch.library.custom_op("honest::linear_relu_into", mutates_args=("y",))
def linear_relu_into(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor) -> None:
    (M, K), N = x.shape, bias.shape[0]
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    kernel[grid](x, weight, bias, y, M, N, K, y.stride(0), BM=64, BN=64, BK=32)


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.halves = None

    def split(self):
        middle = self.linear.out_features // 2
        weight, bias = self.linear.weight.detach(), self.linear.bias.detach()
        return [(weight[part].t().contiguous(), bias[part], part) for part in (slice(middle), slice(middle, None))]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.halves = self.halves or self.split()
        y = torch.empty(x.shape[0], self.linear.out_features, device=x.device)
        for weight, bias, part in self.halves:
            torch.ops.honest.linear_relu_into(x, weight, bias, y[:, part])
        return y
