"""Linear layer in 8-bit floating point with fine-grained scales, as DeepSeek-V3 is trained and served.

    y[m, n] = sum over k of x[m, k] * x_scale[m, k // 128] * weight[n, k] * weight_scale[n // 128, k // 128]

with // rounding down. x is (M, K), float8_e4m3fn; x_scale is (M, ceil(K / 128)), float32; y is (M, N), bfloat16. The
buffer `weight` is (N, K), float8_e4m3fn; the buffer `weight_scale` is (ceil(N / 128), ceil(K / 128)), float32. Scales
are positive; all are contiguous. The constructor takes K and N. The reference rounds scaled values to bfloat16, sums
in float32 and rounds to bfloat16; a kernel need not round before the end. All three sizes vary between cases, and the
last group or block may be incomplete. The timed sizes are those of the shared expert's `gate_up_proj` of DeepSeek-V3 in
a prefill of 4096 tokens.
"""

import torch
import torch.nn as nn

M = 4096
K = 7168
N = 4096
GROUP = 128

CASES: dict[str, dict] = {
    "cpu": {"M": 64, "K": 512, "N": 384},
    "odd": {"M": 61, "K": 257, "N": 131},
    "single": {"M": 1, "K": 1024, "N": 640},
}
HIDDEN: dict[str, dict] = {"other": {"M": 37, "K": 704, "N": 328}}
TAGS: tuple[str, ...] = ("matmul", "quantized")

# The others do not fit into 8 bits.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self, K: int, N: int):
        super().__init__()
        self.register_buffer("weight", (100 * torch.randn(N, K)).clamp(-448, 448).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", 1e-4 * (0.5 + 2 * torch.rand(-(-N // GROUP), -(-K // GROUP))))

    def forward(self, x: torch.Tensor, x_scale: torch.Tensor) -> torch.Tensor:
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        out = torch.float64 if x.dtype == torch.float64 else torch.bfloat16
        n, k = self.weight.shape
        by_column = x_scale.repeat_interleave(GROUP, dim=1)[:, :k]
        by_block = self.weight_scale.repeat_interleave(GROUP, dim=0).repeat_interleave(GROUP, dim=1)[:n, :k]
        return (x.to(wide) * by_column).to(out) @ (self.weight.to(wide) * by_block).to(out).T


def get_inputs() -> list[torch.Tensor]:
    x = (100 * torch.randn(M, K)).clamp(-448, 448).to(torch.float8_e4m3fn)
    return [x, 0.005 * (0.5 + 2 * torch.rand(M, -(-K // GROUP)))]


def get_init_inputs() -> list:
    return [K, N]
