"""Matrix product as a CUDA graph that is captured once for each shape; inputs are copied in, the output lives in it.

problem: matmul.py
device: cuda
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def capture(self, A: torch.Tensor, B: torch.Tensor) -> None:
        self.A, self.B = A.clone(), B.clone()
        torch.mm(self.A, self.B)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = torch.mm(self.A, self.B)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.graph is None or self.A.shape != A.shape:
            self.capture(A, B)
        self.A.copy_(A)
        self.B.copy_(B)
        self.graph.replay()
        return self.out
