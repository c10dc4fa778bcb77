"""Multi-head latent attention of DeepSeek-V3: queries, keys and values go through narrow latent vectors.

For a token x_t, with rms(z; w) = z / sqrt(mean(z^2) + 1e-6) * w, and n, r, d short for the three head dimensions:

    q_t = `q_b_proj` rms(`q_a_proj` x_t; `q_a_layernorm.weight`),     num_heads heads of n + r features
    [c_t, kr_t] = `kv_a_proj_with_mqa` x_t,                           kv_lora_rank and r features
    kv_t = `kv_b_proj` rms(c_t; `kv_a_layernorm.weight`),             num_heads heads of n (key) + d (value) features

The last r features of each head's query, and kr_t, are rotated by the position t; then every head's key is its own n
features followed by the one rotated kr_t. Rotation: with a_i = t * rope_theta^(-2 i / r), features i and i + r / 2
become z_i cos(a_i) - z_(i+r/2) sin(a_i) and z_(i+r/2) cos(a_i) + z_i sin(a_i), for i < r / 2. Attention is causal:
token t takes the values of s <= t with weights softmax over s of (q_t . k_s / sqrt(n + r)). The heads side by side go
through `o_proj`. hidden_states and the result are (batch_size, seq_len, hidden_size); weights are (outputs, inputs),
without biases; all float32 and contiguous. The constructor takes hidden_size, num_attention_heads, q_lora_rank,
kv_lora_rank, qk_nope_head_dim (n), qk_rope_head_dim (r, even), v_head_dim (d), max_position_embeddings, rope_theta
(10000) and attention_dropout (0: nothing is dropped). All the sizes vary between cases.
Differs from kernrl: smaller sizes.
"""

import math

import torch
import torch.nn as nn

batch_size = 4
seq_len = 1024
hidden_size = 2048
num_attention_heads = 16
q_lora_rank = 1536
kv_lora_rank = 512
qk_nope_head_dim = 128
qk_rope_head_dim = 64
v_head_dim = 128
max_position_embeddings = 4096

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 128, "hidden_size": 256, "num_attention_heads": 4, "q_lora_rank": 96,
            "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32},
    "odd": {"batch_size": 3, "seq_len": 61, "hidden_size": 127, "num_attention_heads": 3, "q_lora_rank": 45,
            "kv_lora_rank": 33, "qk_nope_head_dim": 19, "qk_rope_head_dim": 10, "v_head_dim": 21},
    "single": {"batch_size": 1, "seq_len": 300, "hidden_size": 128, "num_attention_heads": 1, "q_lora_rank": 64,
               "kv_lora_rank": 128, "qk_nope_head_dim": 16, "qk_rope_head_dim": 48, "v_head_dim": 64},
}  # fmt: skip
TAGS: tuple[str, ...] = ("attention",)


class RMSNorm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.weight


class Model(nn.Module):
    def __init__(
        self, hidden_size: int, num_attention_heads: int, q_lora_rank: int, kv_lora_rank: int, qk_nope_head_dim: int,
        qk_rope_head_dim: int, v_head_dim: int, max_position_embeddings: int = 2048, rope_theta: float = 10000.0,
        attention_dropout: float = 0.0,
    ):  # fmt: skip
        super().__init__()
        self.heads, self.v_dim = num_attention_heads, v_head_dim
        self.nope, self.rope = qk_nope_head_dim, qk_rope_head_dim
        self.q_a_proj = nn.Linear(hidden_size, q_lora_rank, bias=False)
        self.q_a_layernorm = RMSNorm(q_lora_rank)
        self.q_b_proj = nn.Linear(q_lora_rank, self.heads * (self.nope + self.rope), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden_size, kv_lora_rank + self.rope, bias=False)
        self.kv_a_layernorm = RMSNorm(kv_lora_rank)
        self.kv_b_proj = nn.Linear(kv_lora_rank, self.heads * (self.nope + self.v_dim), bias=False)
        self.o_proj = nn.Linear(self.heads * self.v_dim, hidden_size, bias=False)
        steps = torch.arange(0, self.rope, 2) / self.rope
        self.register_buffer("inv_freq", rope_theta**-steps, persistent=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[-2], device=x.device, dtype=x.dtype), self.inv_freq)
        cos, sin = angles.cos(), angles.sin()
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        length, latent = hidden_states.shape[1], self.kv_b_proj.in_features
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))
        q_nope, q_rope = q.unflatten(2, (self.heads, -1)).transpose(1, 2).split((self.nope, self.rope), dim=-1)
        c, k_rope = self.kv_a_proj_with_mqa(hidden_states).split((latent, self.rope), dim=-1)
        kv = self.kv_b_proj(self.kv_a_layernorm(c)).unflatten(2, (self.heads, -1)).transpose(1, 2)
        k_nope, v = kv.split((self.nope, self.v_dim), dim=-1)
        q = torch.cat((q_nope, self.rotate(q_rope)), dim=-1)
        k = torch.cat((k_nope, self.rotate(k_rope)[:, None].expand(-1, self.heads, -1, -1)), dim=-1)
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(self.nope + self.rope)).masked_fill(later, float("-inf"))
        return self.o_proj((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, seq_len, hidden_size)]


def get_init_inputs() -> list:
    return [hidden_size, num_attention_heads, q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim,
            v_head_dim, max_position_embeddings]  # fmt: skip
