import torch
import torch.nn as nn

BLOCK = 1 << 14


class Model(nn.Module):
    """Block by block, with the sum of all blocks before as a carry."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(input)
        carry = torch.zeros((), dtype=input.dtype)
        for start in range(0, input.shape[0], BLOCK):
            part = input[start : start + BLOCK]
            inclusive = torch.cumsum(part, dim=0)
            y[start] = carry
            y[start + 1 : start + BLOCK] = carry + inclusive[: part.shape[0] - 1]
            carry = carry + inclusive[part.shape[0] - 1]
        return y
