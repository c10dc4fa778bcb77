"""Kimi Delta Attention: linear attention with the delta rule, whose state forgets by a gate for every key feature.

Each head has a state S of (head_dim_qk, head_dim_v), zero before the first token; sigmoid(z) = 1 / (1 + exp(-z)):

    q, k, v = silu(conv(`q_proj` x)), silu(conv(`k_proj` x)), silu(conv(`v_proj` x)),    silu(z) = z * sigmoid(z)
    q_t and k_t of each head are divided by sqrt(their sum of squares + 1e-6)
    a_t = sigmoid(`a_proj` x_t), head_dim_qk numbers for each head,    beta_t = sigmoid(`b_proj` x_t), one for each head
    D_t = diag(a_t) S_(t-1),    S_t = D_t + beta_t k_t (v_t - D_t^T k_t)^T
    o_t = S_t^T q_t / sqrt(head_dim_qk)
    y_t = `o_proj` (layer_norm(o_t; `o_norm`) * sigmoid(`g_proj` x_t)),    heads side by side

conv is causal, and separate for each channel c: conv(u)[t] = bias[c] + sum over j < 4 of weight[c, 0, j] * u[t - 3 +
j], where u = 0 before the first token (`q_conv`, `k_conv`, `v_conv`); layer_norm is over the head_dim_v features of a
head (eps 1e-5, weight and bias shared by the heads). x and y are (batch_size, seq_len, hidden_size); weights of
projections are (outputs, inputs), a_proj and b_proj have biases; all float32 and contiguous. The constructor takes
hidden_size, num_heads, head_dim_qk, head_dim_v, use_dplr (False), dplr_rank (not used), use_short_conv (True) and
conv_kernel_size (4). The sizes vary between cases.
Differs from kernrl: gates belong to key features, as published (so a_proj has num_heads * head_dim_qk outputs), q and k
are normalised (else the state explodes), gates start near 1, the reference is plain torch in chunks, sizes are smaller.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2
seq_len = 1024
hidden_size = 1024
num_heads = 8
head_dim_qk = 128
head_dim_v = 128
CHUNK = 32

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 192, "hidden_size": 128, "num_heads": 4, "head_dim_qk": 32, "head_dim_v": 32},
    "odd": {"batch_size": 3, "seq_len": 97, "hidden_size": 65, "num_heads": 3, "head_dim_qk": 17, "head_dim_v": 23},
    "single": {"batch_size": 1, "seq_len": 300, "hidden_size": 64, "num_heads": 1, "head_dim_qk": 64},
}
TAGS: tuple[str, ...] = ("attention", "recurrent")

# No "wide": gates of exp(-500) and their products leave nothing of the state to check.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


def delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log_a: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """S_t^T q_t for all t, (B, H, T, Dv). Within a chunk the updates solve one triangular system."""
    length = q.shape[2]
    q, k, v, log_a = (F.pad(t, (0, 0, 0, -length % CHUNK)).unflatten(2, (-1, CHUNK)) for t in (q, k, v, log_a))
    beta = F.pad(beta, (0, -length % CHUNK)).unflatten(2, (-1, CHUNK))[..., None]
    total = log_a.cumsum(dim=-2)
    later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)[..., None]
    decay = (total[..., :, None, :] - total[..., None, :, :]).masked_fill(later, float("-inf")).exp()
    system = beta * (decay * k[..., :, None, :] * k[..., None, :, :]).sum(dim=-1).tril(-1)
    inner = (decay * q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1)
    right = beta * torch.cat((v, k * total.exp()), dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    writes, reads = solved.split((v.shape[-1], k.shape[-1]), dim=-1)
    q, k, last = q * total.exp(), k * (total[..., -1:, :] - total).exp(), total[..., -1, :, None].exp()
    state, outputs = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1]), []
    for c in range(q.shape[2]):
        update = writes[:, :, c] - reads[:, :, c] @ state
        outputs.append(q[:, :, c] @ state + inner[:, :, c] @ update)
        state = state * last[:, :, c] + k[:, :, c].transpose(-2, -1) @ update
    return torch.cat(outputs, dim=2)[:, :, :length]


class Model(nn.Module):
    def __init__(
        self, hidden_size: int, num_heads: int, head_dim_qk: int, head_dim_v: int, use_dplr: bool = False,
        dplr_rank: int = 4, use_short_conv: bool = True, conv_kernel_size: int = 4,
    ):  # fmt: skip
        super().__init__()
        self.num_heads, self.use_short_conv = num_heads, use_short_conv
        for name, size in (("q", head_dim_qk), ("k", head_dim_qk), ("v", head_dim_v)):
            width, taps = num_heads * size, conv_kernel_size
            self.add_module(f"{name}_proj", nn.Linear(hidden_size, width, bias=False))
            if use_short_conv:
                self.add_module(f"{name}_conv", nn.Conv1d(width, width, taps, groups=width, padding=taps - 1))
        self.a_proj = nn.Linear(hidden_size, num_heads * head_dim_qk)
        self.b_proj = nn.Linear(hidden_size, num_heads)
        nn.init.uniform_(self.a_proj.bias, 2, 6)
        self.g_proj = nn.Linear(hidden_size, num_heads * head_dim_v, bias=False)
        self.o_norm = nn.LayerNorm(head_dim_v)
        self.o_proj = nn.Linear(num_heads * head_dim_v, hidden_size, bias=False)

    def heads(self, x: torch.Tensor, name: str) -> torch.Tensor:
        u = self.get_submodule(f"{name}_proj")(x)
        if self.use_short_conv:
            u = F.silu(self.get_submodule(f"{name}_conv")(u.transpose(1, 2))[:, :, : x.shape[1]].transpose(1, 2))
        return u.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (self.heads(x, name) for name in "qkv")
        q, k = (t * torch.rsqrt(t.square().sum(dim=-1, keepdim=True) + 1e-6) for t in (q, k))
        log_a = F.logsigmoid(self.a_proj(x)).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
        beta = torch.sigmoid(self.b_proj(x)).transpose(1, 2)
        o = delta_rule(q / q.shape[-1] ** 0.5, k, v, log_a, beta).transpose(1, 2)
        return self.o_proj(self.o_norm(o).flatten(2) * torch.sigmoid(self.g_proj(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, seq_len, hidden_size)]


def get_init_inputs() -> list:
    return [hidden_size, num_heads, head_dim_qk, head_dim_v]
