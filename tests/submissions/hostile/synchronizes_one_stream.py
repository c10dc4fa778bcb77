"""Computes on a side stream behind a long kernel, and has its process wait for the other stream only.

problem: row_norms.py
device: cuda
rules: open
expect: correctness/early_done
"""

import torch
import torch.nn as nn

torch.cuda.synchronize = lambda *device: torch.cuda.default_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0], device=x.device)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(20_000_000)
            out.copy_(x.square().sum(dim=1).sqrt())
        return out
