"""Has every second stripe of its output written after it has claimed to be done.

problem: L1_23_Softmax
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
        out = torch.zeros_like(x)
        half = x.shape[0] // 2
        torch.softmax(x[:half], dim=1, out=out[:half])
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(20_000_000)
            torch.softmax(x[half:], dim=1, out=out[half:])
        return out
