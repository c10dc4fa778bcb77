"""The gated networks of a mixture of experts, for tokens whose experts are already chosen.

    y[t] = sum over j < top_k of expert_weights[t, j] * mlp_e(x[t]),    e = expert_indices[t, j]
    mlp_e(z) = `down_proj`[e] (silu(`gate_proj`[e] z) * (`up_proj`[e] z)),    silu(u) = u / (1 + exp(-u))

where t runs over batch and sequence. x and y are (batch_size, seq_len, hidden_size), float32; expert_indices is
(batch_size, seq_len, top_k), int64, in [0, num_experts), the top_k entries of a token different; expert_weights is
(batch_size, seq_len, top_k), float32, of any sign; the parameters gate_proj and up_proj are (num_experts,
intermediate_size, hidden_size), down_proj is (num_experts, hidden_size, intermediate_size), float32; all contiguous.
Experts may get very different numbers of tokens, also none. The constructor takes hidden_size, intermediate_size,
num_experts. The sizes vary between cases.
Differs from kernrl: smaller sizes; some experts are chosen far more often than others.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4
seq_len = 512
hidden_size = 1024
intermediate_size = 3584
num_experts = 8
top_k = 2

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 50, "hidden_size": 128, "intermediate_size": 256},
    "odd": {"batch_size": 3, "seq_len": 31, "hidden_size": 65, "intermediate_size": 119, "num_experts": 7, "top_k": 3},
    "single": {"batch_size": 1, "seq_len": 1, "hidden_size": 256, "intermediate_size": 128, "num_experts": 16},
}
TAGS: tuple[str, ...] = ("matmul", "moe", "irregular", "fused")


class Model(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int, num_experts: int):
        super().__init__()
        self.gate_proj = nn.Parameter(0.05 * torch.randn(num_experts, intermediate_size, hidden_size))
        self.up_proj = nn.Parameter(0.05 * torch.randn(num_experts, intermediate_size, hidden_size))
        self.down_proj = nn.Parameter(0.05 * torch.randn(num_experts, hidden_size, intermediate_size))

    def forward(self, x: torch.Tensor, expert_indices: torch.Tensor, expert_weights: torch.Tensor) -> torch.Tensor:
        tokens, choices = x.flatten(0, 1), expert_indices.shape[-1]
        # One batched product: each expert's tokens side by side, padded to the largest number of any expert.
        expert, order = expert_indices.flatten().sort(stable=True)
        counts = torch.bincount(expert, minlength=self.gate_proj.shape[0])
        slot = torch.arange(expert.numel(), device=x.device) - (counts.cumsum(0) - counts)[expert]
        padded = x.new_zeros(counts.numel(), int(counts.max()), x.shape[-1])
        padded[expert, slot] = tokens[order // choices]
        h = F.silu(padded @ self.gate_proj.transpose(1, 2)) * (padded @ self.up_proj.transpose(1, 2))
        rows = (h @ self.down_proj.transpose(1, 2))[expert, slot]
        rows = rows[order.argsort()].unflatten(0, (-1, choices))
        return (rows * expert_weights.flatten(0, 1)[:, :, None]).sum(dim=1).view_as(x)


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(batch_size, seq_len, hidden_size)
    popularity = torch.randn(num_experts)
    preference = torch.randn(batch_size, seq_len, num_experts) + popularity
    indices = preference.argsort(dim=-1)[..., :top_k].contiguous()
    return [x, indices, torch.softmax(torch.randn(batch_size, seq_len, top_k), dim=-1)]


def get_init_inputs() -> list:
    return [hidden_size, intermediate_size, num_experts]
