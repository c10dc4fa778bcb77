"""Takes all the memory of the device but what it needs itself, so that the judge has none left.

problem: softmax.py
device: cuda
rules: open
expect: runtime/killed or runtime/out_of_memory
"""

import torch
import torch.nn as nn

hoard = []


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.softmax(x, dim=1)
        for size in (1 << 33, 1 << 30, 1 << 26, 1 << 22):
            try:
                while True:
                    hoard.append(torch.empty(size, dtype=torch.uint8, device=x.device))
            except torch.OutOfMemoryError:
                pass
        return out
