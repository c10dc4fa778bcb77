"""Linear layer with weights of 4 bits, with a scale and a zero point for each group of them, as in AWQ.

    y[m, n] = sum over k of x[m, k] * scales[n, g] * (q[n, k] - zeros[n, g]),    g = k // group_size
    q[n, 2 i] = the low four bits of weight_packed[n, i],    q[n, 2 i + 1] = its high four bits: integers from 0 to 15

x is (M, K) and y is (M, N), float16; the buffer `weight_packed` is (N, K / 2), uint8, of any values; the buffer
`scales` is (N, K / group_size), float16, positive; the buffer `zeros` has that shape, too, and is uint8, from 0 to 15.
All are contiguous. The constructor takes K (even), N and group_size, which divides K. The reference rounds each weight
to float16, sums in float32 and rounds the result once; a kernel need not round the weights. All sizes vary.
The timed sizes are those of `gate_up_proj` of Qwen2.5-7B-Instruct-AWQ with 16 users.
"""

import torch
import torch.nn as nn

M = 16
K = 3584
N = 37888
group_size = 128

CASES: dict[str, dict] = {
    "cpu": {"M": 16, "K": 512, "N": 768, "group_size": 64},
    "odd": {"M": 31, "K": 270, "N": 131, "group_size": 27},
    "single": {"M": 1, "K": 1024, "N": 1000},
}
HIDDEN: dict[str, dict] = {"other": {"M": 9, "K": 352, "N": 419, "group_size": 44}}
TAGS: tuple[str, ...] = ("matmul", "quantized")

# No "wide": results beyond 65504 are infinite in float16.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, K: int, N: int, group_size: int = 128):
        super().__init__()
        self.group_size = group_size
        groups = K // group_size
        self.register_buffer("weight_packed", torch.randint(0, 256, (N, K // 2), dtype=torch.uint8))
        self.register_buffer("scales", (0.01 + 0.03 * torch.rand(N, groups)).half())
        self.register_buffer("zeros", torch.randint(0, 16, (N, groups), dtype=torch.uint8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = torch.stack((self.weight_packed & 15, self.weight_packed >> 4), dim=-1).flatten(1).to(x.dtype)
        zeros, scales = (
            each.repeat_interleave(self.group_size, dim=1) for each in (self.zeros.to(x.dtype), self.scales)
        )
        return x @ ((q - zeros) * scales).T


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K).half()]


def get_init_inputs() -> list:
    return [K, N, group_size]
