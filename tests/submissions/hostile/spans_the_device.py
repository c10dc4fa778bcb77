"""Returns a right answer whose rows lie far apart, so that it spans most of the device's memory.

problem: softmax.py
device: cuda
rules: open
expect: no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.large = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.large is None:
            free, _ = torch.cuda.mem_get_info()
            self.large = torch.empty(int(free * 0.6) >> 23 << 21, device=x.device)
        pitch = self.large.numel() // x.shape[0]
        out = self.large.as_strided(x.shape, (pitch, 1))
        return out.copy_(torch.softmax(x, dim=1))
