"""Matrix product into one output buffer that is kept from call to call.

problem: L1_1_Square_matrix_multiplication_
device: any
rules: open
expect: correct
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.out is None:
            self.out = torch.empty(A.shape[0], B.shape[1], dtype=A.dtype, device=A.device)
        return torch.mm(A, B, out=self.out)
