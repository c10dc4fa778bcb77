"""Number theoretic transform of each row: a discrete Fourier transform over the integers modulo a prime.

    y[b, k] = sum over j of x[b, j] * w^(j * k) mod p,    p = 998244353,    w = 3^((p - 1) / length) mod p

so w has order length. x and y are (batch_size, length), int64, contiguous, every element in [0, p), in natural order. p
is below 2^30, and a product of two elements fits into 64 bits. The constructor takes length, a power of two and at
most 2^16. The buffer `powers`, (length / 2,), int64, is powers[i] = w^i mod p. Both sizes vary between cases.
"""

import torch
import torch.nn as nn

batch_size = 1024
length = 2**14

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 10, "length": 4096},
    "odd": {"batch_size": 65, "length": 128},
    "single": {"batch_size": 1, "length": 65536},
}
TAGS: tuple[str, ...] = ("transform",)

PRIME = 998244353


class Model(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        powers = torch.ones(1, dtype=torch.int64)
        root = pow(3, (PRIME - 1) // length, PRIME)
        while len(powers) < length // 2:
            powers = torch.cat([powers, powers * pow(root, len(powers), PRIME) % PRIME])
        self.register_buffer("powers", powers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape, stride = x.shape, 1
        while stride < shape[1]:  # Stockham's form, which leaves the results in natural order
            low, high = x.view(len(x), 2, -1, stride).unbind(1)
            turned = (low - high) * self.powers[::stride, None] % PRIME
            x = torch.stack([(low + high) % PRIME, turned], 2).view(shape)
            stride *= 2
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, PRIME, (batch_size, length))]


def get_init_inputs() -> list:
    return [length]
