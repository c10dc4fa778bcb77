"""Mixture-of-experts layer of DeepSeek-V3: grouped choice of experts, gated networks, and one shared by all tokens.

With E experts in n_group groups of neighbours, for a token x:

    logit_e = `gate.weight`[e] . x,    choice_e = logit_e + `gate.e_score_correction_bias`[e]
    the topk_group groups whose two largest choice values have the largest sum stay; among the experts of these, the
    num_experts_per_tok with the largest choice values are taken
    weight_e = routed_scaling_factor * sigmoid(logit_e) / (sum over the taken e of sigmoid(logit_e))
    y = shared(x) + sum over the taken e of weight_e * mlp_e(x)
    mlp_e(x) = `down_proj`[e] (silu(`gate_proj`[e] x) * (`up_proj`[e] x)),    silu(z) = z / (1 + exp(-z))

shared is the same with `shared_gate_proj`, `shared_up_proj` and `shared_down_proj`, n_shared_experts times as wide.
hidden_states and y are (batch_size, seq_len, hidden_size); gate.weight is (E, hidden_size) and its bias, a buffer,
(E,); gate_proj and up_proj are (E, intermediate_size, hidden_size), down_proj (E, hidden_size, intermediate_size);
weights of the shared part are (outputs, inputs); all float32 and contiguous. The constructor takes hidden_size,
intermediate_size, n_routed_experts (E), num_experts_per_tok, n_group, topk_group, n_shared_experts (1 or more),
routed_scaling_factor. The sizes vary between cases. hidden_states are multiples of 1/8, gate.weight of 2^-7, the bias
of 2^-18: float32 holds every choice value exactly in whatever order it is summed, and no two that are compared are
equal.
Differs from kernrl: values on this grid; experts are chosen by logits instead of sigmoids, so that rounding cannot
decide; the layer works in training mode; at least one shared expert; fewer and narrower experts.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 4
seq_len = 1024
hidden_size = 1024
intermediate_size = 512
n_routed_experts = 64
num_experts_per_tok = 8
n_group = 8
topk_group = 4
n_shared_experts = 2
routed_scaling_factor = 2.5

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 60, "hidden_size": 128, "intermediate_size": 96, "n_routed_experts": 32},
    "odd": {"batch_size": 3, "seq_len": 31, "hidden_size": 65, "intermediate_size": 37, "n_routed_experts": 15,
            "num_experts_per_tok": 3, "n_group": 3, "topk_group": 1, "n_shared_experts": 1},
    "single": {"batch_size": 1, "seq_len": 1, "hidden_size": 512, "intermediate_size": 128, "n_routed_experts": 16},
}  # fmt: skip
TAGS: tuple[str, ...] = ("matmul", "moe", "irregular", "fused")

# Any other distribution leaves the grid, and rounding would choose some of the experts.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Gate(nn.Module):
    def __init__(self, hidden_size: int, experts: int):
        super().__init__()
        self.weight = nn.Parameter(torch.round(6 * torch.randn(experts, hidden_size)) / 2**7)
        # The last bits number the experts: choice values, and sums of two of one group, are then all different.
        numbered = torch.round(256 * torch.randn(experts)) / 2**10 + torch.arange(experts) / 2**18
        self.register_buffer("e_score_correction_bias", numbered)


class Model(nn.Module):
    def __init__(
        self, hidden_size: int, intermediate_size: int, n_routed_experts: int, num_experts_per_tok: int, n_group: int,
        topk_group: int, n_shared_experts: int = 1, routed_scaling_factor: float = 1.0,
    ):  # fmt: skip
        super().__init__()
        self.top_k, self.n_group, self.topk_group = num_experts_per_tok, n_group, topk_group
        self.scaling = routed_scaling_factor
        self.gate_proj = nn.Parameter(0.05 * torch.randn(n_routed_experts, intermediate_size, hidden_size))
        self.up_proj = nn.Parameter(0.05 * torch.randn(n_routed_experts, intermediate_size, hidden_size))
        self.down_proj = nn.Parameter(0.05 * torch.randn(n_routed_experts, hidden_size, intermediate_size))
        self.gate = Gate(hidden_size, n_routed_experts)
        self.shared_gate_proj = nn.Linear(hidden_size, n_shared_experts * intermediate_size, bias=False)
        self.shared_up_proj = nn.Linear(hidden_size, n_shared_experts * intermediate_size, bias=False)
        self.shared_down_proj = nn.Linear(n_shared_experts * intermediate_size, hidden_size, bias=False)

    def route(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = x @ self.gate.weight.T
        groups = (logits + self.gate.e_score_correction_bias).unflatten(1, (self.n_group, -1))
        best = groups.topk(2, dim=2).values.sum(dim=2).topk(self.topk_group, dim=1).indices
        open_groups = torch.zeros_like(groups[:, :, 0], dtype=torch.bool).scatter(1, best, True)
        chosen = groups.masked_fill(~open_groups[:, :, None], float("-inf")).flatten(1).topk(self.top_k, dim=1).indices
        scores = torch.sigmoid(logits.gather(1, chosen))
        return chosen, self.scaling * scores / scores.sum(dim=1, keepdim=True)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states.flatten(0, 1)
        chosen, weights = self.route(x)
        # One batched product: each expert's tokens side by side, padded to the largest number of any expert.
        expert, order = chosen.flatten().sort(stable=True)
        counts = torch.bincount(expert, minlength=self.gate_proj.shape[0])
        slot = torch.arange(expert.numel(), device=x.device) - (counts.cumsum(0) - counts)[expert]
        padded = x.new_zeros(counts.numel(), int(counts.max()), x.shape[1])
        padded[expert, slot] = x[order // self.top_k]
        h = F.silu(padded @ self.gate_proj.transpose(1, 2)) * (padded @ self.up_proj.transpose(1, 2))
        rows = (h @ self.down_proj.transpose(1, 2))[expert, slot]
        routed = (rows[order.argsort()].unflatten(0, (-1, self.top_k)) * weights[:, :, None]).sum(dim=1)
        shared = self.shared_down_proj(F.silu(self.shared_gate_proj(x)) * self.shared_up_proj(x))
        return (routed + shared).view_as(hidden_states)


def get_inputs() -> list[torch.Tensor]:
    return [torch.round(8 * torch.randn(batch_size, seq_len, hidden_size)) / 8]


def get_init_inputs() -> list:
    return [hidden_size, intermediate_size, n_routed_experts, num_experts_per_tok, n_group, topk_group,
            n_shared_experts, routed_scaling_factor]  # fmt: skip
