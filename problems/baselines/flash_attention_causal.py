"""FlashAttention through scaled_dot_product_attention."""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
