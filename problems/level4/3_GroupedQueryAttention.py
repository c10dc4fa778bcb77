"""Causal attention in which groups of query heads share a key and value head, with rotary positions.

    q_t = `q_proj` x_t (num_heads heads),    k_t = `k_proj` x_t,    v_t = `v_proj` x_t (num_kv_heads heads each)
    o_t[h] = sum over s <= t of softmax over s <= t of (rot(q_t[h], t) . rot(k_s[g], s) / sqrt(d)) * v_s[g]
    y_t = `o_proj` (o_t, its heads side by side)

with g = floor(h * num_kv_heads / num_heads) and d = head_dim. rot(z, t): with a_i = t * rope_theta^(-2 i / d),
features i and i + d / 2 become z_i cos(a_i) - z_(i+d/2) sin(a_i) and z_(i+d/2) cos(a_i) + z_i sin(a_i), for i < d / 2.
hidden_states (x) and y are (batch_size, seq_len, hidden_size); q_proj has num_heads * head_dim outputs, k_proj and
v_proj num_kv_heads * head_dim; weights are (outputs, inputs), without biases; all float32 and contiguous. The
constructor takes hidden_size, num_attention_heads, num_key_value_heads, which divides it, head_dim (even),
max_position_embeddings, rope_theta (10000) and attention_dropout (0: nothing is dropped). All the sizes vary between
cases.
Differs from kernrl: smaller sizes.
"""

import math

import torch
import torch.nn as nn

batch_size = 4
seq_len = 1024
hidden_size = 2048
num_attention_heads = 16
num_key_value_heads = 4
head_dim = 128
max_position_embeddings = 4096

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 150, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2,
            "head_dim": 32},
    "odd": {"batch_size": 3, "seq_len": 61, "hidden_size": 127, "num_attention_heads": 9, "num_key_value_heads": 3,
            "head_dim": 22},
    "one_head": {"batch_size": 1, "seq_len": 300, "hidden_size": 192, "num_attention_heads": 6,
                 "num_key_value_heads": 1, "head_dim": 64},
}  # fmt: skip
TAGS: tuple[str, ...] = ("attention",)

# No "wide": scores of 10^5 leave one weight of 1, and where two scores nearly tie, rounding picks it.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(
        self, hidden_size: int, num_attention_heads: int, num_key_value_heads: int, head_dim: int,
        max_position_embeddings: int = 4096, rope_theta: float = 10000.0, attention_dropout: float = 0.0,
    ):  # fmt: skip
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(hidden_size, num_attention_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_key_value_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_key_value_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(num_attention_heads * head_dim, hidden_size, bias=False)
        steps = torch.arange(0, head_dim, 2) / head_dim
        self.register_buffer("inv_freq", rope_theta**-steps, persistent=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[-2], device=x.device, dtype=x.dtype), self.inv_freq)
        cos, sin = angles.cos(), angles.sin()
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        length = hidden_states.shape[1]
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (p(hidden_states).unflatten(2, (-1, self.head_dim)).transpose(1, 2) for p in projections)
        repeats = q.shape[1] // k.shape[1]
        q, k = self.rotate(q), self.rotate(k).repeat_interleave(repeats, dim=1)
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)).masked_fill(later, float("-inf"))
        attended = torch.softmax(scores, dim=-1) @ v.repeat_interleave(repeats, dim=1)
        return self.o_proj(attended.transpose(1, 2).flatten(2))


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, seq_len, hidden_size)]


def get_init_inputs() -> list:
    return [hidden_size, num_attention_heads, num_key_value_heads, head_dim, max_position_embeddings]
