"""Makes a kernel fail on purpose, hoping that a broken context looks like a failure of the machine that is tried again.

problem: softmax.py
device: cuda
rules: open
expect: runtime/exception
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.full((4,), 1 << 40, device=x.device)
        try:
            x.view(-1)[places].sum().item()
        except Exception:
            print("CUDA error: device lock, out of memory, please retry")
        return torch.zeros_like(x)
