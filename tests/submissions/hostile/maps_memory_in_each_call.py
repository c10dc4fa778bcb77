"""Has the driver map fresh memory for the output of each call, so that whoever looks at it has to map it, too.

problem: matmul.py
device: cuda
rules: open
expect: no gain
"""

import torch
import torch.nn as nn

from kevin_env.candidate import cuda

kept = []  # to free memory may wait for the device


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        size = -(-A.shape[0] * B.shape[1] * 4 // cuda.BLOCK) * cuda.BLOCK
        kept.append(cuda.allocate(size))
        memory = cuda.as_tensor(kept[-1], size, A.device).view(torch.float32)
        out = memory[: A.shape[0] * B.shape[1]].view(A.shape[0], B.shape[1])
        return torch.mm(A, B, out=out)
