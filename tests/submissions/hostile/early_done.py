"""Has its process claim to be done while a long kernel still runs.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/early_done
"""

import torch
import torch.nn as nn


torch.cuda.synchronize = lambda *device: None


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.cuda._sleep(20_000_000)
        return torch.softmax(x, dim=1)
