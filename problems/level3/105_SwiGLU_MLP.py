"""The gated two-layer MLP of current language models, in bfloat16.

    g = x `gate_proj.weight`^T,    u = x `up_proj.weight`^T
    y = (g / (1 + exp(-g)) * u) `down_proj.weight`^T

x and y are (num_tokens, hidden_size); the weights of gate_proj and up_proj are (intermediate_size, hidden_size), that
of down_proj is (hidden_size, intermediate_size); all bfloat16 and contiguous. There are no biases. The reference sums
in float32 inside each product and rounds g, u, the activation, the product of the two and y to bfloat16; a kernel need
not round in between. The constructor takes hidden_size and intermediate_size. All three sizes vary between cases.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_tokens = 4096
hidden_size = 4096
intermediate_size = 11008

CASES: dict[str, dict] = {
    "cpu": {"num_tokens": 48, "hidden_size": 256, "intermediate_size": 704},
    "odd": {"num_tokens": 61, "hidden_size": 127, "intermediate_size": 353},
    "single": {"num_tokens": 1, "hidden_size": 1024, "intermediate_size": 512},
}
HIDDEN: dict[str, dict] = {"other": {"num_tokens": 29, "hidden_size": 331, "intermediate_size": 517}}
BASELINE = "../baselines/swiglu_mlp.py"
TAGS: tuple[str, ...] = ("matmul", "activation", "fused")


class Model(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False, dtype=torch.bfloat16)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False, dtype=torch.bfloat16)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def get_inputs() -> list[torch.Tensor]:
    return [(2 * torch.randn(num_tokens, hidden_size)).bfloat16()]


def get_init_inputs() -> list:
    return [hidden_size, intermediate_size]
