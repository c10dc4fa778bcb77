import math

import torch
import torch.nn as nn

QUERIES, KEYS = 64, 48


class Model(nn.Module):
    """Flash attention: blocks of keys with a running maximum and sum for each query."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(q.dtype, torch.float32)
        length = q.shape[2]
        scale = 1.0 / math.sqrt(q.shape[3])
        o = torch.empty_like(q)
        for i in range(0, length, QUERIES):
            query = q[:, :, i : i + QUERIES].to(wide)
            most = torch.full((*query.shape[:3], 1), float("-inf"), dtype=wide)
            total = torch.zeros_like(most)
            mixed = torch.zeros_like(query)
            rows = torch.arange(i, i + query.shape[2])
            for j in range(0, i + QUERIES, KEYS):
                key, value = k[:, :, j : j + KEYS].to(wide), v[:, :, j : j + KEYS].to(wide)
                columns = torch.arange(j, j + key.shape[2])
                scores = (query @ key.transpose(-2, -1)) * scale
                scores = scores.masked_fill(columns > rows[:, None], float("-inf"))
                higher = (
                    torch.maximum(most, scores.amax(dim=-1, keepdim=True)) if key.shape[2] else most
                )
                weights = torch.exp(scores - higher)
                kept = torch.exp(most - higher)
                total = total * kept + weights.sum(dim=-1, keepdim=True)
                mixed = mixed * kept + weights @ value
                most = higher
            o[:, :, i : i + QUERIES] = (mixed / total).to(q.dtype)
        return o
