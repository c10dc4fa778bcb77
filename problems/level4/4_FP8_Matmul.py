"""Matrix product of float16 activations and float32 weights, both rounded to 8-bit floating point first.

Each of the two matrices is scaled by a power of two of its own. With amax the largest absolute value of matrix A and
e the integer for which 2^(e-1) <= amax < 2^e:

    fp8(A) = round to nearest even of (A * 2^(top - e)) in the 8-bit format
    y[b, s, n] = 2^(e_x + e_w - 2 top) * sum over k of fp8(x)[b, s, k] * fp8(weight)[k, n]

The format is float8_e4m3fn with top = 8 if use_e4m3, else float8_e5m2 with top = 15; nothing saturates. The sum
is taken in float32 and rounded to float16 once. x is (batch_size, seq_len, K), float16; the parameter
`weight` is (K, N), float32; y is (batch_size, seq_len, N), float16; all contiguous. The constructor takes M (which is
batch_size * seq_len), K, N and use_e4m3. The sizes and use_e4m3 vary between cases.
Differs from kernrl: scales are powers of two, as in the MX formats, because then the 8-bit values do not depend on
rounding in the scale; the reference multiplies them as float16, which holds them to 2^-25; it also runs on a CPU.
"""

import torch
import torch.nn as nn

batch_size = 4
seq_len = 2048
M = batch_size * seq_len
K = 4096
N = 4096
use_e4m3 = True

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 48, "K": 512, "N": 384},
    "odd": {"batch_size": 3, "seq_len": 31, "K": 257, "N": 131},
    "e5m2": {"batch_size": 1, "seq_len": 40, "K": 512, "N": 256, "use_e4m3": False},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 1, "seq_len": 67, "K": 389, "N": 203}}
BASELINE = "../baselines/fp8_matmul.py"
TAGS: tuple[str, ...] = ("matmul", "quantized")


class Model(nn.Module):
    def __init__(self, M: int, K: int, N: int, use_e4m3: bool = True):
        super().__init__()
        self.format = torch.float8_e4m3fn if use_e4m3 else torch.float8_e5m2
        self.top = 8 if use_e4m3 else 15
        self.weight = nn.Parameter(0.02 * torch.randn(K, N))

    def rounded(self, a: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The values of fp8(a), scaled back, in `dtype`."""
        wide = a.to(torch.promote_types(a.dtype, torch.float32))
        amax = wide.abs().max()
        scale = 2.0**self.top * torch.frexp(amax).mantissa / amax  # exact: amax is its mantissa times 2^e
        return ((wide * scale).to(self.format).to(wide.dtype) / scale).to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rounded(x, x.dtype) @ self.rounded(self.weight, x.dtype)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, seq_len, K).half()]


def get_init_inputs() -> list:
    return [M, K, N, use_e4m3]
