"""BLAKE3 hash of one long message (the hash mode of the BLAKE3 specification, 32 bytes of output).

The message is cut into chunks of 1024 bytes, these into blocks of 64 bytes; the last chunk and block may be shorter,
and zeros fill up the last block. Blocks of a chunk are compressed one after another: the first from IV, each next from
the result before; the counter is the chunk's number; the flags are CHUNK_START (1) for a chunk's first block, plus
CHUNK_END (2) for its last. Neighbours of the results are joined, level by level, and an odd one out moves up as it is:
a pair is one block of 64 bytes, compressed from IV with counter 0 and flag PARENT (4), until one is left. The last
compression of all has ROOT (8) as well, and its result is the hash.

message is (message_length,), at least 1 long; hash is (32,); both are int64, one byte in [0, 256) per element, and
contiguous. The constructor takes nothing. The buffers `IV`, (8,), and `MSG_SCHEDULE`, (7, 16), both int64, hold the
initial words and the order of the message words in each round. message_length varies between cases.
Differs from kernrl: the whole of BLAKE3 with its tree, where kernrl has one block and flags that BLAKE3 does not know.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

message_length = 10_000_000

CASES: dict[str, dict] = {
    "cpu": {"message_length": 100_000},
    "odd": {"message_length": 5121},
    "short": {"message_length": 100},
}
TAGS: tuple[str, ...] = ("crypto",)

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
MASK = 2**32 - 1
TWICE = 2**32 + 1


def rotated_right(words: torch.Tensor, by: int) -> torch.Tensor:
    """Right in the lower 32 bits. What is above them there is masked away before it can move down."""
    return (words & MASK) * TWICE >> by


def mixed(rows: list[torch.Tensor], first: torch.Tensor, second: torch.Tensor) -> list[torch.Tensor]:
    """G on four columns at once: each of the rows is (4, n), as are the two words that each column takes in."""
    a, b, c, d = rows
    for words, turn_d, turn_b in ((first, 16, 12), (second, 8, 7)):
        a = a + b + words
        d = rotated_right(d ^ a, turn_d)
        c = c + d
        b = rotated_right(b ^ c, turn_b)
    return [a, b, c, d]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        order = [list(range(16))]
        while len(order) < 7:
            order.append([order[-1][i] for i in PERMUTATION])
        self.register_buffer("IV", torch.tensor(IV))
        self.register_buffer("MSG_SCHEDULE", torch.tensor(order))

    def compress(self, chain: torch.Tensor, words: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """From (8, n) and the words of a block, (16, n), to (8, n); tail is counter, its upper half, length, flags."""
        rows = [chain[:4], chain[4:], self.IV[:4, None].expand_as(tail), tail]
        for order in self.MSG_SCHEDULE:
            taken = words[order]
            rows = mixed(rows, taken[0:8:2], taken[1:8:2])
            rows = mixed([row.roll(-i, 0) for i, row in enumerate(rows)], taken[8::2], taken[9::2])  # diagonals
            rows = [row.roll(i, 0) for i, row in enumerate(rows)]
        return torch.cat([rows[0] ^ rows[2], rows[1] ^ rows[3]]) & MASK

    def chunks(self, message: torch.Tensor) -> torch.Tensor:
        """The result of each chunk, (8, chunks)."""
        count = -(-len(message) // 1024)
        b0, b1, b2, b3 = F.pad(message, (0, count * 1024 - len(message))).view(count, 16, 16, 4).permute(3, 1, 2, 0)
        words = b0 | b1 << 8 | b2 << 16 | b3 << 24
        number = torch.arange(count, device=message.device)
        chain = self.IV[:, None].expand(8, count)
        for block in range(16):
            left = len(message) - 1024 * number - 64 * block  # bytes of the chunk's message that are still to come
            flags = CHUNK_START * (block == 0) + (CHUNK_END + ROOT * (count == 1)) * ((left <= 64) | (block == 15))
            tail = torch.stack([number, torch.zeros_like(number), left.clamp(max=64), flags])
            chain = torch.where(left > 0, self.compress(chain, words[block], tail), chain)
        return chain

    def forward(self, message: torch.Tensor) -> torch.Tensor:
        nodes = self.chunks(message)
        while nodes.shape[1] > 1:
            pairs = torch.cat([nodes[:, 0:-1:2], nodes[:, 1::2]])
            flags = PARENT + ROOT * (nodes.shape[1] == 2)
            tail = self.IV.new_tensor([0, 0, 64, flags])[:, None].expand(4, pairs.shape[1])
            joined = self.compress(self.IV[:, None].expand(8, pairs.shape[1]), pairs, tail)
            nodes = torch.cat([joined, nodes[:, 2 * pairs.shape[1] :]], 1)
        return torch.stack([nodes[:, 0] >> shift & 255 for shift in (0, 8, 16, 24)], 1).flatten()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (message_length,))]


def get_init_inputs() -> list:
    return []
