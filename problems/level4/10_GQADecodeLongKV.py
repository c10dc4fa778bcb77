"""One decoding step of attention over a long, contiguous cache, in bfloat16, with its log-sum-exp. Two outputs.

For batch b, query head h, kv head g = floor(h * num_kv_heads / num_heads), and sums over all t < kv_len:

    s[t] = q[b, h] . k[b, g, t] / sqrt(head_dim)
    lse[b, h] = log(sum over t of exp(s[t]))
    o[b, h] = sum over t of exp(s[t] - lse[b, h]) * v[b, g, t]

Scores may be large, so their maximum must be subtracted before the exponential. There are few queries and many keys:
a kernel has to split the keys to use the whole device. q and o are (batch_size, num_heads, head_dim), k and v are
(batch_size, num_kv_heads, kv_len, head_dim), all bfloat16; lse is (batch_size, num_heads), float32; all contiguous.
num_kv_heads divides num_heads. `forward` takes (q, k, v) and returns (o, lse). The reference computes in float32 and
rounds o once. All five sizes vary between cases. There are no parameters.
"""

import math

import torch
import torch.nn as nn

batch_size = 4
num_heads = 32
num_kv_heads = 4
kv_len = 32768
head_dim = 128

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "num_heads": 8, "num_kv_heads": 2, "kv_len": 3000, "head_dim": 64},
    "odd": {"batch_size": 3, "num_heads": 15, "num_kv_heads": 5, "kv_len": 509, "head_dim": 33},
    "single": {"batch_size": 1, "num_heads": 3, "num_kv_heads": 1, "kv_len": 10000},
}
HIDDEN: dict[str, dict] = {
    "other": {"batch_size": 2, "num_heads": 21, "num_kv_heads": 3, "kv_len": 1733, "head_dim": 48}
}
TAGS: tuple[str, ...] = ("attention", "decode")

# Not the others: scores reach 10^2 and more, so that one weight is 1 and near ties would be settled by rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = torch.promote_types(q.dtype, torch.float32)
        grouped = q.to(wide).unflatten(1, (k.shape[1], -1))
        scores = grouped @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
        lse = torch.logsumexp(scores, dim=-1, keepdim=True)
        o = torch.exp(scores - lse) @ v.to(wide)
        return o.flatten(1, 2).to(q.dtype), lse.flatten(1)


def get_inputs() -> list[torch.Tensor]:
    # Queries are wide, so that a few keys have most of the weight and outputs do not average away; some more than
    # others, so that lse varies.
    k, v = (torch.randn(batch_size, num_kv_heads, kv_len, head_dim).bfloat16() for _ in range(2))
    q = torch.randn(batch_size, num_heads, head_dim) * (1.5 + 3 * torch.rand(batch_size, num_heads, 1))
    return [q.bfloat16(), k, v]


def get_init_inputs() -> list:
    return []
