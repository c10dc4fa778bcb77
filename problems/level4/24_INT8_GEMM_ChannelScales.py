"""Linear layer on 8-bit integers with a scale per token and per output channel: W8A8, as in SmoothQuant.

    y[m, n] = x_scale[m] * weight_scale[n] * sum over k of x[m, k] * weight[n, k] + bias[n]

x is (M, K), int8; x_scale is (M, 1), float32, positive; y is (M, N), bfloat16. The buffer `weight` is (N, K), int8; the
buffer `weight_scale` is (N,), float32, positive; the parameter `bias` is (N,), float32. All are contiguous. Integers
are from -127 to 127, and their sum is exact in 32 bits. `forward` takes (x, x_scale); the constructor takes K and N.
The reference multiplies in bfloat16, which holds every value, sums in float32, and rounds to bfloat16 before the
scales and at the end. All three sizes vary between cases. The timed sizes are those of `qkv_proj` of Qwen2.5-7B
(quantized.w8a8), which has a bias, in a prefill of 8192 tokens.
"""

import torch
import torch.nn as nn

M = 8192
K = 3584
N = 4608

CASES: dict[str, dict] = {
    "cpu": {"M": 96, "K": 512, "N": 384},
    "odd": {"M": 61, "K": 257, "N": 131},
    "single": {"M": 1, "K": 1024, "N": 512},
}
HIDDEN: dict[str, dict] = {"other": {"M": 45, "K": 736, "N": 208}}
TAGS: tuple[str, ...] = ("matmul", "quantized")


class Model(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (N, K), dtype=torch.int8))
        self.register_buffer("weight_scale", 1e-4 * (1 + torch.rand(N)))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if x_scale.dtype == torch.float64 else torch.bfloat16
        product = x.to(wide) @ self.weight.to(wide).T
        return (product * x_scale * self.weight_scale + self.bias).to(wide)


def get_inputs() -> list[torch.Tensor]:
    x = torch.randint(-127, 128, (M, K), dtype=torch.int8)
    return [x, 0.005 * (1 + torch.rand(M, 1))]


def get_init_inputs() -> list:
    return [K, N]
