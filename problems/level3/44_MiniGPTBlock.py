"""One transformer block of GPT-2: causal self-attention and a two-layer network, each behind a layer normalisation.

    h = x + attn(norm(x; `ln_1`)),    y = h + mlp(norm(h; `ln_2`))
    norm(u; ln) = (u - mean(u)) / sqrt(var(u) + 1e-5) * ln.weight + ln.bias,    over the n_embd features of a token
    mlp(u) = `mlp.c_proj.weight` g(`mlp.c_fc.weight` u + `mlp.c_fc.bias`) + `mlp.c_proj.bias`
    g(z) = z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3)))

attn is causal attention with n_head heads of d = n_embd / n_head features: queries, keys and values are, in this
order, the thirds of `attn.c_attn.weight` u + `attn.c_attn.bias`; token t attends to the tokens s <= t with weights
softmax over s of (q_t . k_s / sqrt(d)); the heads side by side go through `attn.c_proj` (weight and bias).
x and y are (batch_size, seq_len, n_embd); weights of linear layers are (outputs, inputs), c_fc has 4 n_embd outputs;
the buffer `attn.bias` is (1, 1, max_seqlen, max_seqlen), 1 where s <= t, else 0. All are float32 and contiguous. The
constructor takes n_embd, n_head, attn_pdrop, resid_pdrop (both 0: nothing is dropped) and max_seqlen >= seq_len.
The sizes vary between cases.
Differs from kernrl: a smaller batch.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 16
max_seqlen = 1024
seq_len = 512
n_embd = 768
n_head = 8
attn_pdrop = 0.0
resid_pdrop = 0.0

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 4, "max_seqlen": 128, "seq_len": 100, "n_embd": 192, "n_head": 4},
    "odd": {"batch_size": 3, "max_seqlen": 67, "seq_len": 61, "n_embd": 93, "n_head": 3},
    "single": {"batch_size": 1, "max_seqlen": 300, "seq_len": 300, "n_embd": 64, "n_head": 1},
}
TAGS: tuple[str, ...] = ("attention", "activation", "fused")


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, max_seqlen: int):
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


class Model(nn.Module):
    def __init__(self, n_embd: int, n_head: int, attn_pdrop: float, resid_pdrop: float, max_seqlen: int):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, max_seqlen)
        self.ln_2 = nn.LayerNorm(n_embd)
        layers = {"c_fc": nn.Linear(n_embd, 4 * n_embd), "c_proj": nn.Linear(4 * n_embd, n_embd)}
        self.mlp = nn.ModuleDict(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + self.attn(self.ln_1(x))
        z = self.mlp["c_fc"](self.ln_2(h))
        return h + self.mlp["c_proj"](F.gelu(z, approximate="tanh"))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, seq_len, n_embd)]


def get_init_inputs() -> list:
    return [n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen]
