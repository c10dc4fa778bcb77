import helion
import helion.language as hl
import torch
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[1024], num_warps=4))
def squared_difference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    for tile in hl.tile(out.size(0)):
        difference = a[tile] - b[tile]
        out[tile] = difference * difference
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        return squared_difference(a.view(-1), b.view(-1)).view(a.shape)
