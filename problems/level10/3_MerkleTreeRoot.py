"""Root of a binary Merkle tree whose nodes are hashed with SHA3-256 (FIPS 202).

    node[l + 1, i] = SHA3-256(node[l, 2 * i] || node[l, 2 * i + 1]),    node[0, i] = leaves[i]

until one node is left, the root. Leaves of 32 zero bytes follow the given ones up to the next power of two.
leaves is (num_leaves, 32), root is (32,); both are int64, one byte in [0, 256) per element, and contiguous. num_leaves
varies between cases, and is more than 1. There are no parameters. The 64 bytes of two nodes fill one block of SHA3-256
with its padding (rate 136), so each node costs one Keccak-f[1600].
Differs from kernrl: SHA3-256 where kernrl has a stand-in whose root is always zero; a larger tree.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_leaves = 12_000

CASES: dict[str, dict] = {
    "cpu": {"num_leaves": 500},
    "odd": {"num_leaves": 67},
    "pair": {"num_leaves": 2},
}
TAGS: tuple[str, ...] = ("crypto",)

# fmt: off
ROUND_CONSTANTS = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000,
    0x000000000000808B, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)
ROTATIONS = (0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14)
# fmt: on


def rotated_left(lanes: torch.Tensor, by: torch.Tensor | int) -> torch.Tensor:
    return (lanes << by) | ((lanes >> 1 & 2**63 - 1) >> (63 - by))  # >> alone would copy the sign


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        signed = [constant - 2**64 if constant >> 63 else constant for constant in ROUND_CONSTANTS]
        self.register_buffer("round_constants", torch.tensor(signed), persistent=False)
        self.register_buffer("rotations", torch.tensor(ROTATIONS).view(5, 5, 1), persistent=False)
        source = [5 * x + (x + 3 * y) % 5 for y in range(5) for x in range(5)]
        self.register_buffer("source", torch.tensor(source), persistent=False)

    def permute(self, state: torch.Tensor) -> torch.Tensor:
        """Keccak-f[1600] of the lanes at [y, x], (5, 5, n)."""
        for constant in self.round_constants:
            column = state[0] ^ state[1] ^ state[2] ^ state[3] ^ state[4]
            state = state ^ column.roll(1, 0) ^ rotated_left(column.roll(-1, 0), 1)
            state = rotated_left(state, self.rotations).flatten(0, 1)[self.source].view_as(state)
            state = state ^ (~state.roll(-1, 1) & state.roll(-2, 1))
            state[0, 0] ^= constant
        return state

    def forward(self, leaves: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(0, 64, 8, device=leaves.device)
        width = 1 << (len(leaves) - 1).bit_length()
        nodes = F.pad(leaves, (0, 0, 0, width - len(leaves)))
        nodes = (nodes.view(width, 4, 8) << shifts).sum(2).T  # as lanes: 64 bits, the first byte lowest
        while nodes.shape[1] > 1:
            state = nodes.new_zeros(25, nodes.shape[1] // 2)
            state[0:4], state[4:8] = nodes[:, 0::2], nodes[:, 1::2]
            state[8], state[16] = 0x06, -(2**63)  # the padding's first and last bit
            nodes = self.permute(state.view(5, 5, -1)).flatten(0, 1)[:4]
        return (nodes >> shifts & 255).flatten()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (num_leaves, 32))]


def get_init_inputs() -> list:
    return []
