"""SHAKE128 of many messages of one length (FIPS 202), as used to expand seeds.

    outputs[b] = the first output_length bytes of SHAKE128(messages[b])

A message and its padding (0x1F, zeros, 0x80 added to the last byte) fill whole blocks of 168 bytes. Each is added (xor)
to the first 21 lanes of the state, 64 bits with the first byte lowest, and Keccak-f[1600] follows; outputs are
those lanes again, 168 bytes per Keccak-f[1600].
messages is (batch_size, message_length), outputs is (batch_size, output_length), both uint8 and contiguous. The
constructor takes output_length. All three numbers vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2**16
message_length = 200
output_length = 336

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 300},
    "odd": {"batch_size": 67, "message_length": 167, "output_length": 169},
    "long": {"batch_size": 2, "message_length": 1000, "output_length": 32},
}
TAGS: tuple[str, ...] = ("crypto",)

RATE = 168
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
    def __init__(self, output_length: int):
        super().__init__()
        self.output_length = output_length
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

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        batch, length = messages.shape
        shifts = torch.arange(0, 64, 8, device=messages.device)
        padded = F.pad(messages, (0, RATE - length % RATE))
        padded[:, length] = 0x1F
        padded[:, -1] ^= 0x80
        blocks = (padded.view(batch, -1, RATE // 8, 8).long() << shifts).sum(3)
        state = blocks.new_zeros(25, batch)
        for block in blocks.unbind(1):
            state[: RATE // 8] ^= block.T
            state = self.permute(state.view(5, 5, -1)).flatten(0, 1)
        outputs = [state[: RATE // 8]]
        while len(outputs) * RATE < self.output_length:
            state = self.permute(state.view(5, 5, -1)).flatten(0, 1)
            outputs.append(state[: RATE // 8])
        outputs = torch.cat(outputs).T[:, :, None] >> shifts & 255
        return outputs.to(torch.uint8).flatten(1)[:, : self.output_length].contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (batch_size, message_length), dtype=torch.uint8)]


def get_init_inputs() -> list:
    return [output_length]
