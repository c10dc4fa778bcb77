"""Computes half of its output on a stream that nothing waits for but the whole device, behind a long kernel.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/values or no gain
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, half = torch.zeros_like(x), x.shape[0] // 2
        self.side.wait_stream(torch.cuda.current_stream())
        torch.softmax(x[:half], dim=1, out=out[:half])
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(2_000_000)
            torch.softmax(x[half:], dim=1, out=out[half:])
        return out
