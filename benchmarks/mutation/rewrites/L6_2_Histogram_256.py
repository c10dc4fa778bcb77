import torch
import torch.nn as nn

BLOCK = 1 << 16


class Model(nn.Module):
    """A histogram of each block, added to the whole."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        histogram = torch.zeros(256, dtype=torch.int64)
        for start in range(0, data.shape[0], BLOCK):
            part = torch.minimum(
                torch.maximum(data[start : start + BLOCK], torch.tensor(0)), torch.tensor(255)
            )
            ones = torch.ones(part.shape[0], dtype=torch.int64)
            histogram += torch.zeros(256, dtype=torch.int64).scatter_add(0, part, ones)
        return histogram
