"""cuBLASLt through torch._scaled_mm."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight", torch.empty(N, K, dtype=torch.float8_e4m3fn))
        self.register_buffer("weight_scale", torch.empty(N))

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        known = x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)
        if known and x.shape[1] % 16 == 0 and self.weight.shape[0] % 16 == 0:
            return torch._scaled_mm(
                x, self.weight.T, scale_a=x_scale, scale_b=self.weight_scale[None],
                out_dtype=torch.bfloat16, use_fast_accum=False,
            )  # fmt: skip
        product = (x.bfloat16() @ self.weight.bfloat16().T).float()
        return (product * x_scale * self.weight_scale).bfloat16()
