"""Causal attention in float16: the forward pass that FlashAttention made fast.

    o[b, h, i] = sum over j <= i of p[i, j] * v[b, h, j]
    p[i, .] = softmax over j <= i of (c * q[b, h, i] . k[b, h, j])

with c = 1 / sqrt(head_dim). q, k, v and o are (batch_size, num_heads, seq_len, head_dim), float16, contiguous. The
reference computes in float32 and rounds once, at the end; its scores of all pairs need not be stored: a running
maximum and sum per row suffice. All four sizes vary between cases. There are no parameters.
"""

import math

import torch
import torch.nn as nn

batch_size = 2
num_heads = 16
seq_len = 2048
head_dim = 64

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1, "num_heads": 4, "seq_len": 500},
    "odd": {"batch_size": 3, "num_heads": 5, "seq_len": 77, "head_dim": 33},
    "long": {"batch_size": 1, "num_heads": 1, "seq_len": 1500, "head_dim": 128},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 2, "num_heads": 3, "seq_len": 389, "head_dim": 80}}
BASELINE = "../baselines/flash_attention_causal.py"
TAGS: tuple[str, ...] = ("attention",)

# Not the others: scores reach 10^2 and more, so that one weight is 1 and near ties would be settled by rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
        later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return (weights @ v.to(wide)).to(q.dtype)


def get_inputs() -> list[torch.Tensor]:
    # Queries are wide, so that a few keys have most of the weight and late rows of o are as large as early ones.
    shape = (batch_size, num_heads, seq_len, head_dim)
    q, k, v = (torch.randn(shape) for _ in range(3))
    return [(2.5 * q).half(), k.half(), v.half()]


def get_init_inputs() -> list:
    return []
