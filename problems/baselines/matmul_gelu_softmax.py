"""torch.compile(mode="max-autotune")."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        # Without CUDA graphs, which would copy the input: launches are not part of a timed call.
        self.compiled = torch.compile(self.run, mode="max-autotune-no-cudagraphs")

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(F.gelu(self.linear(x)), dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.compiled(x) if x.is_cuda else self.run(x)
