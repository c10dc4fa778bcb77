"""ReLU in Triton as a graph that is captured anew for every address that an input comes at.

problem: relu.py
device: cuda
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count)
    tl.store(y + place, tl.where(value > 0, value, 0.0), mask=place < count)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def capture(self, x: torch.Tensor):
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 2048),)
        relu[grid](x, y, x.numel(), BLOCK=2048)  # compiles, which cannot be captured
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            relu[grid](x, y, x.numel(), BLOCK=2048)
        return graph, y

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.data_ptr(), tuple(x.shape))
        if key not in self.graphs:
            self.graphs[key] = self.capture(x)
        graph, y = self.graphs[key]
        graph.replay()
        return y
