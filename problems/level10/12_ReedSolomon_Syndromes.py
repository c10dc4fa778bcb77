"""Syndromes of Reed-Solomon code words over GF(256).

    syndromes[b, j] = sum over i of codewords[b, i] * alpha^(j * (codeword_length - 1 - i)),    j < num_syndromes

in GF(256), the polynomials over GF(2) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11D): bit k of a byte is the coefficient of
x^k, a sum is the exclusive or, and alpha = x (2). So syndromes[b, j] is the code word, as a polynomial with its
highest coefficient first, at alpha^j.
codewords is (batch_size, codeword_length), at most 255 long, any bytes; syndromes is (batch_size, num_syndromes); both
are uint8 and contiguous. The constructor takes num_syndromes, at most 64. The buffer `products`, (num_syndromes, 256),
uint8, is products[j, a] = alpha^j * a. All three numbers vary between cases.
"""

import torch
import torch.nn as nn

batch_size = 2**16
codeword_length = 255
num_syndromes = 32

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 300, "num_syndromes": 16},
    "odd": {"batch_size": 129, "codeword_length": 101, "num_syndromes": 7},
    "single": {"batch_size": 1, "codeword_length": 204, "num_syndromes": 64},
}
TAGS: tuple[str, ...] = ("coding",)


class Model(nn.Module):
    def __init__(self, num_syndromes: int):
        super().__init__()
        rows = [torch.arange(256)]
        while len(rows) < num_syndromes:
            rows.append((rows[-1] << 1) ^ (rows[-1] >> 7) * 0x11D)
        self.register_buffer("products", torch.stack(rows).to(torch.uint8))

    def forward(self, codewords: torch.Tensor) -> torch.Tensor:
        products = self.products.flatten()
        row = 256 * torch.arange(len(self.products), device=codewords.device)
        syndromes = codewords.new_zeros(len(codewords), len(row))
        for coefficient in codewords.unbind(1):  # Horner's rule, for all syndromes at once
            syndromes = products[row + syndromes] ^ coefficient[:, None]
        return syndromes


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (batch_size, codeword_length), dtype=torch.uint8)]


def get_init_inputs() -> list:
    return [num_syndromes]
