"""Rotary position embedding of queries and keys, in bfloat16. Two outputs.

With half = rotary_dim / 2, p = positions[b, t], and for every head and every i < half:

    y[b, t, h, i]        = x[b, t, h, i] * cos[p, i] - x[b, t, h, i + half] * sin[p, i]
    y[b, t, h, i + half] = x[b, t, h, i + half] * cos[p, i] + x[b, t, h, i] * sin[p, i]

and y = x in the features from rotary_dim on. x is q, of (batch_size, seq_len, num_heads, head_dim), and k, of
(batch_size, seq_len, num_kv_heads, head_dim), both bfloat16. positions is (batch_size, seq_len), int64, each in
[0, max_position), in no particular order. The buffers `cos` and `sin` are (max_position, half), float32, and hold the
cosine and sine of p * 10000^(-i / half). All are contiguous. `forward` takes (q, k, positions) and returns (rotated
q, rotated k), computed in float32 and rounded once. The constructor takes rotary_dim, even and at most head_dim, and
max_position. All seven sizes vary between cases.
"""

import torch
import torch.nn as nn

batch_size = 4
seq_len = 4096
num_heads = 32
num_kv_heads = 8
head_dim = 128
rotary_dim = 128
max_position = 8192

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 200, "num_heads": 12, "num_kv_heads": 4, "rotary_dim": 96, "max_position": 512},
    "odd": {"batch_size": 3, "seq_len": 61, "num_heads": 5, "num_kv_heads": 1, "head_dim": 75, "rotary_dim": 50},
    "single": {"batch_size": 1, "seq_len": 1, "num_kv_heads": 32, "max_position": 4096},
}
HIDDEN: dict[str, dict] = {
    "other": {"batch_size": 1, "seq_len": 147, "num_heads": 6, "num_kv_heads": 2, "head_dim": 90, "rotary_dim": 46}
}
BASELINE = "../baselines/rotary_embedding.py"
TAGS: tuple[str, ...] = ("elementwise",)


class Model(nn.Module):
    def __init__(self, rotary_dim: int, max_position: int):
        super().__init__()
        steps = torch.arange(rotary_dim // 2, dtype=torch.float64) / (rotary_dim // 2)
        angles = torch.arange(max_position, dtype=torch.float64)[:, None] * 10000.0**-steps
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())
        self.rotary_dim = rotary_dim

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x[..., : self.rotary_dim].to(cos.dtype).chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return torch.cat((turned.to(x.dtype), x[..., self.rotary_dim :]), dim=-1)

    def forward(self, q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)


def get_inputs() -> list[torch.Tensor]:
    q = torch.randn(batch_size, seq_len, num_heads, head_dim)
    k = torch.randn(batch_size, seq_len, num_kv_heads, head_dim)
    return [q.bfloat16(), k.bfloat16(), torch.randint(0, max_position, (batch_size, seq_len))]


def get_init_inputs() -> list:
    return [rotary_dim, max_position]
