"""torch.compile(mode="max-autotune")."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden_size, dtype=torch.bfloat16))
        # Without CUDA graphs, which would copy the input: launches are not part of a timed call.
        self.compiled = torch.compile(self.run, mode="max-autotune-no-cudagraphs")

    def run(
        self, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        s = x + residual
        wide = s.float()
        n = wide * torch.rsqrt(1e-5 + wide.square().mean(dim=1, keepdim=True)) * self.weight
        scale = n.abs().amax(dim=1, keepdim=True) / 448
        return (n / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale, s

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (self.compiled if x.is_cuda else self.run)(x, residual)
