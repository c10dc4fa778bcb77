"""Causal multi-head self-attention with its projections, as in GPT-2.

    [q_t, k_t, v_t] = `c_attn.weight` x_t + `c_attn.bias`,    each cut into n_head heads of d = n_embd / n_head
    a_t = concatenation over the heads of sum over s <= t of softmax over s <= t of (q_t . k_s / sqrt(d)) * v_s
    y_t = `c_proj.weight` a_t + `c_proj.bias`

x and y are (batch_size, seq_len, n_embd), `c_attn.weight` is (3 n_embd, n_embd) with bias (3 n_embd,), `c_proj.weight`
is (n_embd, n_embd) with bias (n_embd,). The buffer `bias` is (1, 1, max_seqlen, max_seqlen) and holds 1 where s <= t,
0 elsewhere. All are float32 and contiguous. The constructor takes n_embd, n_head, attn_pdrop, resid_pdrop and
max_seqlen >= seq_len; n_head divides n_embd. Both dropout rates are 0: nothing is dropped. The sizes vary between
cases.
Differs from kernrl: a smaller batch of longer sequences.
"""

import math

import torch
import torch.nn as nn

batch_size = 16
max_seqlen = 1024
seq_len = 1024
n_embd = 768
n_head = 12
attn_pdrop = 0.0
resid_pdrop = 0.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "max_seqlen": 256, "seq_len": 200, "n_embd": 192, "n_head": 4},
    "odd": {"batch_size": 3, "max_seqlen": 67, "seq_len": 61, "n_embd": 93, "n_head": 3},
    "single": {"batch_size": 1, "max_seqlen": 600, "seq_len": 600, "n_embd": 64, "n_head": 1},
}
TAGS: tuple[str, ...] = ("attention",)

# No "wide": scores of 10^5 leave one weight of 1, and where two scores nearly tie, rounding picks it.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, n_embd: int, n_head: int, attn_pdrop: float, resid_pdrop: float, max_seqlen: int):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("bias", torch.ones(1, 1, max_seqlen, max_seqlen).tril())
        self.n_head = n_head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        q, k, v = (part.unflatten(2, (self.n_head, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        attended = torch.softmax(scores, dim=-1) @ v
        return self.c_proj(attended.transpose(1, 2).flatten(2))


def get_inputs() -> list[torch.Tensor]:
    return [2 * torch.randn(batch_size, seq_len, n_embd)]


def get_init_inputs() -> list:
    return [n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen]
