"""Gradient of a linear layer with respect to its input in 8-bit floating point: the hybrid recipe of training in FP8.

    dx[m, k] = dy_scale * weight_scale * sum over n of dy[m, n] * weight[n, k]

dy is (M, N), float8_e5m2, which gradients need for its range; dy_scale is a float32 scalar of shape (), positive; dx is
(M, K), bfloat16. The buffer `weight` is (N, K), float8_e4m3fn; the buffer `weight_scale` is a float32 scalar of shape
(). All are contiguous: the sum is over the rows of the weight, so one operand is not in the layout that the 8-bit
tensor cores read. The constructor takes N and K. The reference multiplies in bfloat16, sums in float32, and rounds to
bfloat16 before and after the scales. All three sizes vary between cases. The timed sizes are those of `up_proj` of
Llama-3.1-8B for 4096 tokens.
"""

import torch
import torch.nn as nn

M = 4096
N = 14336
K = 4096

CASES: dict[str, dict] = {
    "cpu": {"M": 96, "N": 512, "K": 384},
    "odd": {"M": 61, "N": 257, "K": 131},
    "single": {"M": 1, "N": 1024, "K": 512},
}
HIDDEN: dict[str, dict] = {"other": {"M": 83, "N": 336, "K": 624}}
TAGS: tuple[str, ...] = ("matmul", "quantized", "backward")

DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self, N: int, K: int):
        super().__init__()
        self.register_buffer("weight", (100 * torch.randn(N, K)).clamp(-448, 448).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", 1e-4 * (1 + torch.rand(())))

    def forward(self, dy: torch.Tensor, dy_scale: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if dy.dtype == torch.float64 else torch.bfloat16
        product = dy.to(wide) @ self.weight.to(wide)
        exact = product.to(torch.promote_types(wide, torch.float32))
        return (exact * (dy_scale * self.weight_scale)).to(wide)


def get_inputs() -> list[torch.Tensor]:
    # Gradients have a wide range: most are small.
    dy = 2000 * torch.randn(M, N) * torch.rand(M, N) ** 2
    return [dy.clamp(-57344, 57344).to(torch.float8_e5m2), 1e-4 * (1 + torch.rand(()))]


def get_init_inputs() -> list:
    return [N, K]
