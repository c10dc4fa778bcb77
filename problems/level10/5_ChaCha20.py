"""ChaCha20 key stream (RFC 8439): many blocks under one key and one nonce.

    keystream[i] = the 64-byte block number counter[i], as 16 little-endian 32-bit words

key is (8,) and nonce is (3,), 32-bit words; counter is (num_blocks,), block numbers in random order that may repeat;
keystream is (num_blocks, 16). All are int64, each element in [0, 2^32), and contiguous. The constructor takes nothing.
The buffer `constants`, (4,), int64, holds the first four words of every block's state. num_blocks varies between cases.
Differs from kernrl: a vector of block numbers where kernrl has one number, and a block for each.
"""

import torch
import torch.nn as nn

num_blocks = 2**20

CASES: dict[str, dict] = {
    "cpu": {"num_blocks": 3000},
    "odd": {"num_blocks": 1021},
    "single": {"num_blocks": 1},
}
TAGS: tuple[str, ...] = ("crypto",)

MASK = 2**32 - 1
TWICE = 2**32 + 1


def rotated_left(words: torch.Tensor, by: int) -> torch.Tensor:
    """Right in the lower 32 bits. What is above them there is masked away before it can move down."""
    return (words & MASK) * TWICE >> (32 - by)


def quarter_rounds(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Four at once: each argument is one row of the state, (4, num_blocks)."""
    a = a + b
    d = rotated_left(d ^ a, 16)
    c = c + d
    b = rotated_left(b ^ c, 12)
    a = a + b
    d = rotated_left(d ^ a, 8)
    c = c + d
    b = rotated_left(b ^ c, 7)
    return a, b, c, d


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("constants", torch.tensor([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]))

    def forward(self, key: torch.Tensor, nonce: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
        fixed = torch.cat([self.constants, key])[:, None].expand(12, len(counter))
        state = torch.cat([fixed, counter[None], nonce[:, None].expand(3, len(counter))])
        a, b, c, d = state.split(4)
        for _ in range(10):
            a, b, c, d = quarter_rounds(a, b, c, d)
            a, b, c, d = quarter_rounds(a, b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0))  # diagonals
            b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
        return ((torch.cat([a, b, c, d]) + state) & MASK).T.contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 2**32, (length,)) for length in (8, 3, num_blocks)]


def get_init_inputs() -> list:
    return []
