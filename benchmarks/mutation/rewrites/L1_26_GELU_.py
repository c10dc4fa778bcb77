import torch
import torch.nn as nn

BLOCK = 1024


class Model(nn.Module):
    """The formula, block by block."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten()
        y = torch.empty_like(flat)
        for start in range(0, flat.numel(), BLOCK * 64):
            part = flat[start : start + BLOCK * 64]
            y[start : start + BLOCK * 64] = (
                0.5 * part * (1.0 + torch.erf(part * 0.7071067811865476))
            )
        return y.view(x.shape)
