"""CUTLASS through torch._grouped_mm."""

import itertools

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, num_experts: int, K: int, N: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_experts, N, K, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        known = x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)
        if known and x.shape[1] % 8 == 0 and self.weight.shape[1] % 8 == 0:
            return torch._grouped_mm(x, self.weight.transpose(1, 2), offs=offsets[1:])
        y = x.new_empty(x.shape[0], self.weight.shape[1])
        ends = offsets.tolist()
        for expert, (first, end) in enumerate(itertools.pairwise(ends)):
            torch.mm(x[first:end], self.weight[expert].T, out=y[first:end])
        return y
