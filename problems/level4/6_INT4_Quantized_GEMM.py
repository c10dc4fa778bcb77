"""Linear layer with weights of 4 bits: float16 activations, one float16 scale for each group of weights.

    y[b, s, n] = sum over k of x[b, s, k] * scales[n, floor(k / group_size)] * (q[n, k] - 8)
    q[n, 2 i] = the low four bits of weight_packed[n, i],    q[n, 2 i + 1] = its high four bits: integers from 0 to 15

x is (batch_size, seq_len, K), float16; y is (batch_size, seq_len, N), float16; the buffer `weight_packed` is (N, K /
2), uint8, of any values; the buffer `scales` is (N, K / group_size), float16, positive; all contiguous. The
constructor takes K (even), N and group_size, which divides K. The reference rounds each scaled weight to float16, sums
in float32 and rounds the result once; a kernel need not round the weights. The sizes vary between cases.
Differs from kernrl: shorter sequences, where reading the weights counts.
"""

import torch
import torch.nn as nn

batch_size = 4
seq_len = 512
K = 4096
N = 11008
group_size = 128

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 2, "seq_len": 16, "K": 512, "N": 768, "group_size": 64},
    "odd": {"batch_size": 3, "seq_len": 31, "K": 270, "N": 131, "group_size": 27},
    "single": {"batch_size": 1, "seq_len": 1, "K": 1024, "N": 1000},
}
HIDDEN: dict[str, dict] = {"other": {"batch_size": 1, "seq_len": 45, "K": 330, "N": 211, "group_size": 33}}
TAGS: tuple[str, ...] = ("matmul", "quantized")

# No "wide": results beyond 65504 are infinite in float16.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, K: int, N: int, group_size: int = 128):
        super().__init__()
        self.group_size = group_size
        self.register_buffer("weight_packed", torch.randint(0, 256, (N, K // 2), dtype=torch.uint8))
        self.register_buffer("scales", (0.02 + 0.1 * torch.rand(N, K // group_size)).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low, high = self.weight_packed & 15, self.weight_packed >> 4
        q = torch.stack((low, high), dim=-1).flatten(1).to(x.dtype) - 8
        weight = q * self.scales.repeat_interleave(self.group_size, dim=1)
        return x @ weight.T


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, seq_len, K).half()]


def get_init_inputs() -> list:
    return [K, N, group_size]
