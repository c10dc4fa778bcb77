"""Modular exponentiation of big integers, as in a Diffie-Hellman key exchange.

    result = base^exponent mod modulus

All four are (words,), words = num_bits / 64, int64, contiguous: the 64-bit limbs of a non-negative integer, the lowest
first, each limb's bits those of an unsigned number. modulus is odd and its highest limb has all bits set, as the primes
of RFC 2409 and RFC 3526; base and exponent are any numbers below 2^num_bits. The constructor takes num_bits, a
multiple of 64 and at least 128, which varies between cases. There are no parameters. Each step needs the one before: it
is the latency of a chain of multiplications that counts.
Differs from kernrl: unsigned limbs, which overflow there; torch operations in place of Python's integers; such moduli.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_bits = 256
words_per_int = num_bits // 64

CASES: dict[str, dict] = {
    "cpu": {"num_bits": 128},
    "odd": {"num_bits": 192},
    "long": {"num_bits": 384},
}
TAGS: tuple[str, ...] = ("crypto",)

BITS = 16
LIMB = 2**BITS - 1


def carried(x: torch.Tensor) -> torch.Tensor:
    """The same numbers with what exceeds each limb's 16 bits added to the next limb; one limb more."""
    y = F.pad(x & LIMB, (0, 1))
    y[..., 1:] += x >> BITS
    return y


def normal(x: torch.Tensor) -> torch.Tensor:
    """The same number, (limbs,), with every limb below 2^16; one limb more."""
    size = len(x) + 1
    for _ in range(size + 2):  # limbs shrink in two or three passes, then a carry may run through all of them
        x = carried(x)[:size]
    return x


class Model(nn.Module):
    def __init__(self, num_bits: int = 256):
        super().__init__()
        self.num_bits = num_bits

    def powers(self, gap: torch.Tensor) -> torch.Tensor:
        """Row j is congruent to 2^num_bits * 2^(16 j), in as many limbs as the modulus has; row 0 is gap."""
        rows = [gap]
        for _ in range(len(gap) + 1):
            x = F.pad(rows[-1][:-1], (1, 0)) + rows[-1][-1] * gap
            for _ in range(2):
                highest, x = x[-1], carried(x[:-1])
                x[-1] += highest
            rows.append(x)
        return torch.stack(rows)

    def folded(self, x: torch.Tensor, powers: torch.Tensor) -> torch.Tensor:
        """Congruent to x, in as many limbs as the modulus has."""
        size = powers.shape[1]
        return x[..., :size] + (x[..., size:, None] * powers[: x.shape[-1] - size]).sum(-2)

    def multiplied(self, x: torch.Tensor, y: torch.Tensor, powers: torch.Tensor) -> torch.Tensor:
        """Congruent to the products x * y; all of them in one limb more than the modulus, each limb below 2^19."""
        size = len(y)
        rows = F.pad(x[:, :, None] * y, (0, size))  # one number shorter, row i stands i limbs further to the right
        product = rows.flatten(1)[:, : size * (2 * size - 1)].view(-1, size, 2 * size - 1).sum(1)
        product = carried(carried(self.folded(carried(product), powers)))
        return carried(self.folded(product, powers))

    def forward(self, base: torch.Tensor, exponent: torch.Tensor, modulus: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(0, 64, BITS, device=base.device)
        base, gap = ((x[:, None] >> shifts & LIMB).flatten() for x in (base, ~modulus))
        gap[0] += 1  # 2^num_bits - modulus, which is below 2^(num_bits - 64) and congruent to 2^num_bits
        powers = self.powers(gap)
        pair = F.pad(torch.stack([torch.zeros_like(base), base]), (0, 1))  # the result so far, base^(2^i)
        pair[0, 0] = 1
        for bit in (exponent[:, None] >> torch.arange(64, device=base.device) & 1).bool().flatten().unbind():
            product = self.multiplied(pair, pair[1], powers)
            pair = torch.stack([torch.where(bit, product[0], pair[0]), product[1]])
        result = normal(self.folded(normal(pair[0]), powers))
        less = normal(result + F.pad(gap, (0, 1)))[: len(result)]  # result - modulus + 2^num_bits
        result = torch.where(less[-1] > 0, less, result)[:-1]
        return (result.view(-1, 64 // BITS) << shifts).sum(1)


def get_inputs() -> list[torch.Tensor]:
    base, exponent, modulus = torch.randint(-(2**63), 2**63 - 1, (3, words_per_int)).unbind()
    modulus[0] |= 1
    modulus[-1] = -1
    return [base, exponent, modulus]


def get_init_inputs() -> list:
    return [num_bits]
