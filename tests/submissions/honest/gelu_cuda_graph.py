"""GELU as a CUDA graph that is captured once for each shape; the input is copied in, the output lives in the graph.

problem: L1_26_GELU_
device: cuda
rules: open
expect: correct
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def capture(self, x: torch.Tensor) -> None:
        self.x = x.clone()
        F.gelu(self.x)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = F.gelu(self.x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.graph is None or self.x.shape != x.shape:
            self.capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.out
