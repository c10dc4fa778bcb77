"""Replays a CUDA graph that was captured on a copy of the first input, and never copies another there.

problem: row_norms.py
device: cuda
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def capture(self, x: torch.Tensor) -> None:
        kept = x.clone()
        kept.square().sum(dim=1).sqrt()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = kept.square().sum(dim=1).sqrt()
        self.graphs[x.shape] = graph, out, kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape not in self.graphs:
            self.capture(x)
        graph, out, _ = self.graphs[x.shape]
        graph.replay()
        return out
