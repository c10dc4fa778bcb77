"""Works on a stream that nobody joins, so that events on the current one are reached before the work is done.

problem: relu.py
device: cuda
rules: open
expect: no gain
"""

import torch
import torch.nn as nn

beside = torch.cuda.Stream()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(beside):
            return torch.relu(x)
