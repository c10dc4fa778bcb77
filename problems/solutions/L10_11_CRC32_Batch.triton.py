"""One lane per message, its remainder in a register; the table is small enough to stay in the L1 cache."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def crc32(messages, table, out, count, length, BLOCK: tl.constexpr):
    message = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = message < count
    remainder = tl.full((BLOCK,), 0xFFFFFFFF, tl.uint32)
    for i in range(length):
        byte = tl.load(messages + message * length + i, mask=inside, other=0).to(tl.uint32)
        entry = tl.load(table + ((remainder ^ byte) & 0xFF).to(tl.int32)).to(tl.uint32)
        remainder = entry ^ (remainder >> 8)
    tl.store(out + message, (remainder ^ 0xFFFFFFFF).to(tl.int64), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.empty(256, dtype=torch.int64))

    def forward(self, messages: torch.Tensor) -> torch.Tensor:
        count, length = messages.shape
        out = self.table.new_empty(count)
        crc32[(triton.cdiv(count, 128),)](messages, self.table, out, count, length, BLOCK=128, num_warps=4)
        return out
