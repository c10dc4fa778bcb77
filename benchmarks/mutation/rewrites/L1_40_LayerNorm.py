import torch
import torch.nn as nn

BLOCK = 512


class Model(nn.Module):
    """Three passes: mean, variance, result; the reductions block by block."""

    def __init__(self, normalized_shape: tuple[int, ...]):
        super().__init__()
        self.ln = nn.LayerNorm(list(normalized_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)
        count = flat.shape[1]
        total = torch.zeros(flat.shape[0], 1, dtype=x.dtype)
        for start in range(0, count, BLOCK):
            total += flat[:, start : start + BLOCK].sum(dim=1, keepdim=True)
        mean = total / count
        squares = torch.zeros_like(total)
        for start in range(0, count, BLOCK):
            squares += (flat[:, start : start + BLOCK] - mean).square().sum(dim=1, keepdim=True)
        scaled = (flat - mean) * torch.rsqrt(squares / count + 1e-5)
        return (scaled * self.ln.weight.flatten() + self.ln.bias.flatten()).view(x.shape)
