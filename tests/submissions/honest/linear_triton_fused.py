"""A linear layer and a ReLU in one Triton kernel, in IEEE float32, with programs in groups for the L2.

problem: linear.py
device: any
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu(x, w, b, y, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr):
    program, down, across = tl.program_id(0), tl.cdiv(M, TM), tl.cdiv(N, TN)
    first = program // (GROUP * across) * GROUP
    size = tl.minimum(down - first, GROUP)
    m = (first + program % (GROUP * across) % size) * TM + tl.arange(0, TM)
    n = program % (GROUP * across) // size * TN + tl.arange(0, TN)
    total = tl.zeros((TM, TN), dtype=tl.float32)
    for start in range(0, K, TK):
        k = start + tl.arange(0, TK)
        left = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(w + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    total += tl.load(b + n, mask=n < N, other=0.0)[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(y + m[:, None] * N + n[None, :], tl.maximum(total, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (M, K), N = x.shape, self.linear.out_features
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(M, meta["TM"]) * triton.cdiv(N, meta["TN"]),)  # noqa: E731
        linear_relu[grid](x, self.linear.weight, self.linear.bias, y, M, N, K, TM=64, TN=64, TK=32, GROUP=8)
        return y
