"""Routing for a mixture of experts: the best experts of each token, their weights, and the tokens of each expert.

    experts[t, .] = the numbers of the top_k largest entries of logits[t, .], largest first
    weights[t, j] = exp(logits[t, experts[t, j]]) / sum over i < top_k of exp(logits[t, experts[t, i]])
    counts[e] = how often e occurs in experts
    order = the flat places t * top_k + j, sorted by experts[t, j], and by place where the expert is the same

logits is (num_tokens, num_experts), float32. `forward` returns the tuple (weights, experts, counts, order): weights is
(num_tokens, top_k), float32; experts is (num_tokens, top_k), counts is (num_experts,), order is (num_tokens * top_k,),
all int64; all contiguous. The constructor takes top_k, at most num_experts. All three sizes vary between cases. No two
logits of a token are equal: they are multiples of a power of two, and their last bits differ from expert to expert.
"""

import torch
import torch.nn as nn

num_tokens = 131072
num_experts = 256
top_k = 8

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 3000, "num_experts": 64, "top_k": 4},
    "odd": {"num_tokens": 509, "num_experts": 61, "top_k": 3},
    "single": {"num_tokens": 1, "num_experts": 512},
}
TAGS: tuple[str, ...] = ("sort", "moe")

# Other distributions may bring two equal logits of one token, of which either could come first.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, top_k: int):
        super().__init__()
        self.top_k = top_k

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        best, experts = logits.topk(self.top_k, dim=1)
        chosen = experts.flatten()
        counts = torch.bincount(chosen, minlength=logits.shape[1])
        return torch.softmax(best, dim=1), experts, counts, chosen.sort(stable=True).indices


def get_inputs() -> list[torch.Tensor]:
    # Some experts are more popular than others. Below 2^24 in units of 2^-20, so that float32 holds them exactly.
    coarse = torch.round(2**11 * (1.2 * torch.randn(num_tokens, num_experts) + 0.6 * torch.randn(num_experts)))
    return [(coarse + torch.randperm(num_experts) / 512) / 2**11]


def get_init_inputs() -> list:
    return [top_k]
