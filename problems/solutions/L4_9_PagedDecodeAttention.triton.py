"""Only the tokens that a sequence has are read, straight from their pages; long sequences are split among programs."""

import math

import torch
import triton
import triton.language as tl
from torch import nn

PIECE = 512


@triton.jit
def attend(
    q, k_cache, v_cache, tables, lengths, parts, peaks, sums, heads, kv_heads, size, block_size, max_blocks, pieces,
    scale, GROUP: tl.constexpr, SIZE: tl.constexpr, KEYS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    piece, kv_head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + sequence)
    group = heads // kv_heads
    h = tl.arange(0, GROUP)
    d = tl.arange(0, SIZE)[None, :]
    head = sequence * heads + kv_head * group + h
    known = (h[:, None] < group) & (d < size)
    queries = tl.load(q + head[:, None] * size + d, mask=known, other=0.0)
    most = tl.full((GROUP,), -float("inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    out = tl.zeros((GROUP, SIZE), tl.float32)
    for first in range(piece * PIECE, tl.minimum((piece + 1) * PIECE, length), KEYS):
        t = first + tl.arange(0, KEYS)
        block = tl.load(tables + sequence * max_blocks + t // block_size, mask=t < length, other=0).to(tl.int64)
        place = ((block * block_size + t % block_size) * kv_heads + kv_head)[:, None] * size + d
        there = (t < length)[:, None] & (d < size)
        keys = tl.load(k_cache + place, mask=there, other=0.0)
        scores = tl.where((t < length)[None, :], tl.dot(queries, tl.trans(keys)) * scale, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        power = tl.exp(scores - higher[:, None])
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(power, axis=1)
        values = tl.load(v_cache + place, mask=there, other=0.0)
        out = out * shrink[:, None] + tl.dot(power.to(values.dtype), values)
        most = higher
    target = head * pieces + piece  # a piece past the end of its sequence has sum 0 and peak -inf
    tl.store(peaks + target, most, mask=h < group)
    tl.store(sums + target, total, mask=h < group)
    tl.store(parts + target[:, None] * size + d, out, mask=known)


@triton.jit
def join(parts, peaks, sums, o, size, pieces, SIZE: tl.constexpr, PIECES: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, PIECES)
    d = tl.arange(0, SIZE)
    peak = tl.load(peaks + head * pieces + piece, mask=piece < pieces, other=-float("inf"))
    factor = tl.exp(peak - tl.max(peak, axis=0))
    total = tl.sum(tl.load(sums + head * pieces + piece, mask=piece < pieces, other=0.0) * factor, axis=0)
    place = (head * pieces + piece[:, None]) * size + d[None, :]
    part = tl.load(parts + place, mask=(piece[:, None] < pieces) & (d[None, :] < size), other=0.0)
    tl.store(o + head * size + d, (tl.sum(part * factor[:, None], axis=0) / total).to(tl.float16), mask=d < size)


class ModelNew(nn.Module):
    def forward(
        self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_tables: torch.Tensor,
        seq_lens: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        sequences, heads, size = q.shape
        block_size, kv_heads = k_cache.shape[1:3]
        max_blocks = block_tables.shape[1]
        pieces = triton.cdiv(max_blocks * block_size, PIECE)
        parts = q.new_empty(sequences, heads, pieces, size, dtype=torch.float32)
        peaks = q.new_empty(sequences, heads, pieces, dtype=torch.float32)
        sums = torch.empty_like(peaks)
        o = torch.empty_like(q)
        padded = max(16, triton.next_power_of_2(size))
        attend[(pieces, kv_heads, sequences)](
            q, k_cache, v_cache, block_tables, seq_lens, parts, peaks, sums, heads, kv_heads, size, block_size,
            max_blocks, pieces, 1 / math.sqrt(size), GROUP=max(16, triton.next_power_of_2(heads // kv_heads)),
            SIZE=padded, KEYS=64, PIECE=PIECE, num_warps=4, num_stages=3,
        )  # fmt: skip
        join[(sequences * heads,)](
            parts, peaks, sums, o, size, pieces, SIZE=padded, PIECES=triton.next_power_of_2(pieces)
        )
        return o
