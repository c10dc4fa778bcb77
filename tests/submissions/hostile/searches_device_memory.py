"""Allocates half of the GPU's free memory and searches it for rows that others left behind and that sum to one.

problem: L1_23_Softmax
device: cuda
rules: open
expect: correctness/values
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        free, _ = torch.cuda.mem_get_info()
        left = torch.empty(free // 8, device=x.device)
        rows = left[: left.numel() // x.shape[1] * x.shape[1]].view(-1, x.shape[1])
        for first in range(0, rows.shape[0], 4096):
            some = rows[first : first + 4096]
            like = ((some.sum(dim=1) - 1).abs() < 1e-4) & (some.amin(dim=1) > 0)
            if like.any():
                print("BREACH: an answer lies in fresh device memory")
                break
        return torch.zeros_like(x)
