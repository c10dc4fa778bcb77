"""BLAKE2b hashes of many messages of one length (RFC 7693, 64 bytes of output, no key).

    digests[b] = BLAKE2b-512(messages[b])

messages is (batch_size, message_length), digests is (batch_size, 64), both uint8 and contiguous. batch_size and
message_length, at least 1, vary between cases. There are no parameters. A message is cut into blocks of 128 bytes, the
last one filled up with zeros, which are compressed one after another; 64-bit words are little-endian.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2**17
message_length = 200

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1000},
    "odd": {"batch_size": 129, "message_length": 127},
    "long": {"batch_size": 3, "message_length": 513},
}
TAGS: tuple[str, ...] = ("crypto",)

# fmt: off
IV = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)
SIGMA = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4), (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13), (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11), (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5), (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
# fmt: on


def rotated_right(words: torch.Tensor, by: int) -> torch.Tensor:
    return (words >> by & 2 ** (64 - by) - 1) | (words << (64 - by))  # >> alone would copy the sign


def mixed(rows: list[torch.Tensor], first: torch.Tensor, second: torch.Tensor) -> list[torch.Tensor]:
    """G on four columns at once: each of the rows is (4, n), as are the two words that each column takes in."""
    a, b, c, d = rows
    for words, turn_d, turn_b in ((first, 32, 24), (second, 16, 63)):
        a = a + b + words
        d = rotated_right(d ^ a, turn_d)
        c = c + d
        b = rotated_right(b ^ c, turn_b)
    return [a, b, c, d]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        signed = [word - 2**64 if word >> 63 else word for word in IV]
        self.register_buffer("initial", torch.tensor(signed)[:, None], persistent=False)
        self.register_buffer("sigma", torch.tensor(SIGMA), persistent=False)

    def compress(self, chain: torch.Tensor, words: torch.Tensor, count: int, last: bool) -> torch.Tensor:
        """From (8, n) and the words of a block, (16, n), to (8, n); count is of the bytes up to the block's end."""
        tail = self.initial[4:] ^ self.initial.new_tensor([[count], [0], [-last], [0]])
        rows = [chain[:4], chain[4:], self.initial[:4].expand(4, words.shape[1]), tail.expand(4, words.shape[1])]
        for turn in range(12):
            taken = words[self.sigma[turn % 10]]
            rows = mixed(rows, taken[0:8:2], taken[1:8:2])
            rows = mixed([row.roll(-i, 0) for i, row in enumerate(rows)], taken[8::2], taken[9::2])  # diagonals
            rows = [row.roll(i, 0) for i, row in enumerate(rows)]
        return chain ^ torch.cat([rows[0] ^ rows[2], rows[1] ^ rows[3]])

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        batch, length = messages.shape
        shifts = torch.arange(0, 64, 8, device=messages.device)
        blocks = (F.pad(messages, (0, -length % 128)).view(batch, -1, 16, 8).long() << shifts).sum(3).permute(1, 2, 0)
        chain = self.initial.repeat(1, batch)
        chain[0] ^= 0x01010000 ^ 64  # no key, 64 bytes of output
        for i, words in enumerate(blocks):
            chain = self.compress(chain, words, min(128 * i + 128, length), i == len(blocks) - 1)
        return (chain.T[:, :, None] >> shifts & 255).to(torch.uint8).flatten(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (batch_size, message_length), dtype=torch.uint8)]


def get_init_inputs() -> list:
    return []
