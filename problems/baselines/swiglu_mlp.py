"""cuBLAS, and the activation in one kernel of torch.compile(mode="max-autotune")."""

import torch
import torch.nn.functional as F
from torch import nn


def activation(both: torch.Tensor) -> torch.Tensor:
    gate, up = both.chunk(2, dim=-1)
    return (F.silu(gate.float()) * up.float()).to(both.dtype)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False, dtype=torch.bfloat16)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False, dtype=torch.bfloat16)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False, dtype=torch.bfloat16)
        self.both: torch.Tensor | None = None
        # Without CUDA graphs, which would copy the input: launches are not part of a timed call.
        self.activation = torch.compile(activation, mode="max-autotune-no-cudagraphs")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.both is None:  # one product in place of two, as servers do
            self.both = torch.cat((self.gate_proj.weight, self.up_proj.weight))
        hidden = F.linear(x, self.both)
        fused = self.activation if x.is_cuda else activation
        return F.linear(fused(hidden), self.down_proj.weight)
