"""Sum and layer norm of a row in Helion, with two outputs.

problem: L3_109_ResidualAddLayerNorm
device: cuda
rules: kernel
expect: correct
"""

import helion
import helion.language as hl
import torch
import torch.nn as nn


@helion.kernel(config=helion.Config(block_sizes=[1], num_warps=8))
def add_layer_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = x.size()
    y = torch.empty_like(x)
    s = torch.empty_like(x)
    for row in hl.tile(rows):
        rounded = (x[row, :].to(torch.float32) + residual[row, :].to(torch.float32)).to(torch.bfloat16)
        s[row, :] = rounded
        value = rounded.to(torch.float32)
        distance = value - torch.sum(value, dim=1, keepdim=True) / columns
        variance = torch.sum(distance * distance, dim=1, keepdim=True) / columns
        scaled = distance * torch.rsqrt(variance + eps) * weight[:].to(torch.float32)
        y[row, :] = (scaled + bias[:].to(torch.float32)).to(torch.bfloat16)
    return y, s


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int):
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.bfloat16)

    def forward(self, x, residual):
        return add_layer_norm(x, residual, self.norm.weight, self.norm.bias, self.norm.eps)
