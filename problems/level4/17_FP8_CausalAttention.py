"""Causal attention with grouped heads on queries, keys and values in 8-bit floating point, as in FlashAttention-3.

With g = h // (num_heads / num_kv_heads), rounded down, and c = q_scale[g] * k_scale[g] / sqrt(head_dim):

    s[i, j] = c * q[b, h, i] . k[b, g, j]
    o[b, h, i] = v_scale[g] * sum over j <= i of p[i, j] * v[b, g, j],    p[i, .] = softmax over j <= i of s[i, .]

q is (batch_size, num_heads, seq_len, head_dim), k and v are (batch_size, num_kv_heads, seq_len, head_dim), all
float8_e4m3fn; the scales are (num_kv_heads,), float32, positive; o has the shape of q and is bfloat16. All are
contiguous. `forward` takes (q, k, v, q_scale, k_scale, v_scale). The reference computes in float32, but rounds
256 * exp(s - max) to float8_e4m3fn before the product with v, so that this product can use the 8-bit tensor cores; a
kernel may round in this way, less, or not at all. The sizes vary between cases. There are no parameters. The timed
sizes are those of Llama-3.1-8B in a prefill of 2048 tokens.
"""

import math

import torch
import torch.nn as nn

batch_size = 1
num_heads = 32
num_kv_heads = 8
seq_len = 2048
head_dim = 128

CASES: dict[str, dict] = {
    "cpu": {"num_heads": 4, "num_kv_heads": 2, "seq_len": 300, "head_dim": 64},
    "odd": {"batch_size": 3, "num_heads": 3, "num_kv_heads": 1, "seq_len": 77, "head_dim": 33},
    "long": {"num_heads": 2, "num_kv_heads": 1, "seq_len": 1100, "head_dim": 64},
}
HIDDEN: dict[str, dict] = {
    "other": {"batch_size": 2, "num_heads": 6, "num_kv_heads": 2, "seq_len": 187, "head_dim": 80}
}
TAGS: tuple[str, ...] = ("attention", "quantized")

DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
        q_scale: torch.Tensor, k_scale: torch.Tensor, v_scale: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        exact = q.dtype == torch.float64
        wide = torch.float64 if exact else torch.float32
        groups = q.shape[1] // k.shape[1]
        q, k, v = (each.to(wide) for each in (q.unflatten(1, (-1, groups)), k.unsqueeze(2), v.unsqueeze(2)))
        scale = (q_scale * k_scale / math.sqrt(q.shape[-1]))[:, None, None, None]
        scores = scale * (q @ k.transpose(-2, -1))
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
        power = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        rounded = power if exact else (256 * power).to(torch.float8_e4m3fn).to(wide) / 256
        o = v_scale[:, None, None, None] * (rounded @ v) / power.sum(dim=-1, keepdim=True)
        return o.flatten(1, 2).to(torch.float64 if exact else torch.bfloat16)


def get_inputs() -> list[torch.Tensor]:
    heads = (num_heads, num_kv_heads, num_kv_heads)
    q, k, v = (100 * torch.randn(batch_size, count, seq_len, head_dim) for count in heads)
    scales = [0.01 * (1 + torch.rand(num_kv_heads)) for _ in range(3)]
    return [*(each.clamp(-448, 448).to(torch.float8_e4m3fn) for each in (q, k, v)), *scales]


def get_init_inputs() -> list:
    return []
