"""Linear layer in 8-bit floating point with a scale per token and per output channel: W8A8 of vLLM and TensorRT-LLM.

    y[m, n] = x_scale[m] * weight_scale[n] * sum over k of x[m, k] * weight[n, k]

x is (M, K), float8_e4m3fn; x_scale is (M, 1), float32, positive; y is (M, N), bfloat16. The buffer `weight` is (N, K),
float8_e4m3fn, and the buffer `weight_scale` is (N,), float32, positive. All are contiguous. The constructor takes K and
N. The reference multiplies in bfloat16, which holds every 8-bit value, sums in float32, and rounds to bfloat16 before
and after the scales; a kernel rounds once. All three sizes vary between cases. The timed sizes are those of `qkv_proj`
of Llama-3.1-8B (FP8-dynamic) in a prefill of 8192 tokens.
"""

import torch
import torch.nn as nn

M = 8192
K = 4096
N = 6144

CASES: dict[str, dict] = {
    "cpu": {"M": 96, "K": 512, "N": 384},
    "odd": {"M": 61, "K": 257, "N": 131},
    "single": {"M": 1, "K": 1024, "N": 512},
}
HIDDEN: dict[str, dict] = {"other": {"M": 45, "K": 736, "N": 208}}
BASELINE = "../baselines/fp8_gemm_row_scales.py"
TAGS: tuple[str, ...] = ("matmul", "quantized")

# The others do not fit into 8 bits.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight", (100 * torch.randn(N, K)).clamp(-448, 448).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", 1e-4 * (1 + torch.rand(N)))

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if x.dtype == torch.float64 else torch.bfloat16
        product = x.to(wide) @ self.weight.to(wide).T
        return (product * x_scale * self.weight_scale).to(wide)


def get_inputs() -> list[torch.Tensor]:
    x = (100 * torch.randn(M, K)).clamp(-448, 448).to(torch.float8_e4m3fn)
    return [x, 0.005 * (1 + torch.rand(M, 1))]


def get_init_inputs() -> list:
    return [K, N]
