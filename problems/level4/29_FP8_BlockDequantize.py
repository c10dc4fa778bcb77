"""Dequantizes a matrix of 8-bit floats with one scale for each block of 128 x 128: a checkpoint of DeepSeek-V3.

    y[i, j] = x[i, j] * scale[i // 128, j // 128], rounded to bfloat16

with // rounding down. x is (rows, columns), float8_e4m3fn; scale is (ceil(rows / 128), ceil(columns / 128)), float32,
positive; y is (rows, columns), bfloat16; all contiguous. Blocks at the end may be incomplete. Both sizes vary between
cases. There are no parameters. The timed sizes are those of `mlp.gate_proj` of the dense layers of DeepSeek-V3.
"""

import torch
import torch.nn as nn

rows = 18432
columns = 7168
BLOCK = 128

CASES: dict[str, dict] = {
    "cpu": {"rows": 1024, "columns": 768},
    "odd": {"rows": 301, "columns": 517},
    "single": {"rows": 1, "columns": 9000},
}
HIDDEN: dict[str, dict] = {"other": {"rows": 411, "columns": 1272}}
TAGS: tuple[str, ...] = ("elementwise", "quantized")

DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        exact = x.dtype == torch.float64
        whole = scale.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
        y = x.to(scale.dtype) * whole[: x.shape[0], : x.shape[1]]
        return y if exact else y.to(torch.bfloat16)


def get_inputs() -> list[torch.Tensor]:
    x = (100 * torch.randn(rows, columns)).clamp(-448, 448).to(torch.float8_e4m3fn)
    return [x, 1e-4 * (0.5 + 2 * torch.rand(-(-rows // BLOCK), -(-columns // BLOCK)))]


def get_init_inputs() -> list:
    return []
