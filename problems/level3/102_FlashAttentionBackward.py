"""Gradients of causal attention in float16. Three outputs.

For each batch and head, with c = 1 / sqrt(head_dim) and sums over all rows i or keys j (p[i, j] = 0 where j > i):

    p[i, .] = softmax over j <= i of (c * q[i] . k[j]),    o[i] = sum over j of p[i, j] * v[j]
    dp[i, j] = do[i] . v[j],    ds[i, j] = p[i, j] * (dp[i, j] - do[i] . o[i])
    dq[i] = c * sum over j of ds[i, j] * k[j]
    dk[j] = c * sum over i of ds[i, j] * q[i]
    dv[j] = sum over i of p[i, j] * do[i]

`forward` takes (q, k, v, do) and returns the tuple (dq, dk, dv), each (batch_size, num_heads, seq_len, head_dim),
float16, contiguous; do is the gradient with respect to o. The reference computes in float32 and rounds each result
once. All four sizes vary between cases. There are no parameters.
"""

import math

import torch
import torch.nn as nn

batch_size = 2
num_heads = 12
seq_len = 2048
head_dim = 64

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1, "num_heads": 3, "seq_len": 400},
    "odd": {"batch_size": 3, "num_heads": 5, "seq_len": 77, "head_dim": 33},
    "long": {"batch_size": 1, "num_heads": 1, "seq_len": 1000, "head_dim": 128},
}
TAGS: tuple[str, ...] = ("attention", "backward")

# Not the others: scores reach 10^2 and more, so that one weight is 1 and near ties would be settled by rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        dtype, c = q.dtype, 1 / math.sqrt(q.shape[-1])
        q, k, v, do = (t.to(torch.promote_types(dtype, torch.float32)) for t in (q, k, v, do))
        later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
        p = torch.softmax((c * (q @ k.transpose(-2, -1))).masked_fill(later, float("-inf")), dim=-1)
        dp = do @ v.transpose(-2, -1)
        ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True))
        dq, dk, dv = c * (ds @ k), c * (ds.transpose(-2, -1) @ q), p.transpose(-2, -1) @ do
        return dq.to(dtype), dk.to(dtype), dv.to(dtype)


def get_inputs() -> list[torch.Tensor]:
    shape = (batch_size, num_heads, seq_len, head_dim)
    q, k, v, do = (torch.randn(shape) for _ in range(4))
    return [(2 * q).half(), k.half(), v.half(), do.half()]


def get_init_inputs() -> list:
    return []
