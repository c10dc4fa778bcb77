"""CRC-32 of many messages of one length, as in zlib, PNG and Ethernet.

    r = 0xFFFFFFFF;    for each byte in turn: r = table[(r ^ byte) & 0xFF] ^ (r >> 8);    checksums[b] = r ^ 0xFFFFFFFF

messages is (batch_size, message_length), uint8; checksums is (batch_size,), int64, each in [0, 2^32); both are
contiguous. The constructor takes nothing. The buffer `table`, (256,), int64, is table[i] = i after eight times
i -> (i >> 1) ^ (0xEDB88320 if i is odd else 0). batch_size and message_length vary between cases.
"""

import torch
import torch.nn as nn

batch_size = 2**17
message_length = 512

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 1000, "message_length": 300},
    "odd": {"batch_size": 1021, "message_length": 61},
    "long": {"batch_size": 2, "message_length": 1500},
}
TAGS: tuple[str, ...] = ("coding",)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.arange(256)
        for _ in range(8):
            table = (table >> 1) ^ (table & 1) * 0xEDB88320
        self.register_buffer("table", table)

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        remainder = torch.full((len(messages),), 2**32 - 1, device=messages.device)
        for byte in messages.T.long():
            remainder = self.table[(remainder ^ byte) & 0xFF] ^ (remainder >> 8)
        return remainder ^ 2**32 - 1


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 256, (batch_size, message_length), dtype=torch.uint8)]


def get_init_inputs() -> list:
    return []
