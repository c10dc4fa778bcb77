"""The keys are split among programs, each for all query heads of its group; a second kernel joins what they found."""

import math

import torch
import triton
import triton.language as tl
from torch import nn

PROGRAMS = 528


@triton.jit
def attend(
    q, k, v, parts, peaks, sums, group, kv_len, size, pieces, piece_len, scale,
    GROUP: tl.constexpr, SIZE: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    piece, kv_head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    h = tl.arange(0, GROUP)[:, None]
    d = tl.arange(0, SIZE)[None, :]
    known = (h < group) & (d < size)
    queries = tl.load(q + (kv_head * group + h) * size + d, mask=known, other=0.0)
    most = tl.full((GROUP,), -float("inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    out = tl.zeros((GROUP, SIZE), tl.float32)
    end = tl.minimum((piece + 1) * piece_len, kv_len)
    for first in range(piece * piece_len, end, KEYS):
        t = first + tl.arange(0, KEYS)
        place = (kv_head * kv_len + t[:, None]) * size + d
        there = (t[:, None] < end) & (d < size)
        keys = tl.load(k + place, mask=there, other=0.0)
        scores = tl.where((t < end)[None, :], tl.dot(queries, tl.trans(keys)) * scale, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        power = tl.exp(scores - higher[:, None])
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(power, axis=1)
        values = tl.load(v + place, mask=there, other=0.0)
        out = out * shrink[:, None] + tl.dot(power.to(values.dtype), values)
        most = higher
    head = (kv_head * group + tl.arange(0, GROUP)) * pieces + piece
    tl.store(peaks + head, most, mask=tl.arange(0, GROUP) < group)
    tl.store(sums + head, total, mask=tl.arange(0, GROUP) < group)
    tl.store(parts + head[:, None] * size + d, out, mask=known)


@triton.jit
def join(parts, peaks, sums, o, lse, size, pieces, SIZE: tl.constexpr, PIECES: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, PIECES)
    d = tl.arange(0, SIZE)
    peak = tl.load(peaks + head * pieces + piece, mask=piece < pieces, other=-float("inf"))
    most = tl.max(peak, axis=0)
    factor = tl.exp(peak - most)
    total = tl.sum(tl.load(sums + head * pieces + piece, mask=piece < pieces, other=0.0) * factor, axis=0)
    place = (head * pieces + piece[:, None]) * size + d[None, :]
    part = tl.load(parts + place, mask=(piece[:, None] < pieces) & (d[None, :] < size), other=0.0)
    joined = tl.sum(part * factor[:, None], axis=0) / total
    tl.store(o + head * size + d, joined.to(o.dtype.element_ty), mask=d < size)
    tl.store(lse + head, tl.log(total) + most)


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, heads, size = q.shape
        kv_heads, kv_len = k.shape[1:3]
        group = heads // kv_heads
        pieces = max(1, min(triton.cdiv(kv_len, 128), triton.cdiv(PROGRAMS, batch * kv_heads)))
        piece_len = triton.cdiv(triton.cdiv(kv_len, pieces), 64) * 64
        pieces = triton.cdiv(kv_len, piece_len)
        parts = q.new_empty(batch, heads, pieces, size, dtype=torch.float32)
        peaks = q.new_empty(batch, heads, pieces, dtype=torch.float32)
        sums = torch.empty_like(peaks)
        o = torch.empty_like(q)
        lse = q.new_empty(batch, heads, dtype=torch.float32)
        padded = max(16, triton.next_power_of_2(size))
        attend[(pieces, batch * kv_heads)](
            q, k, v, parts, peaks, sums, group, kv_len, size, pieces, piece_len, 1 / math.sqrt(size),
            GROUP=max(16, triton.next_power_of_2(group)), SIZE=padded, KEYS=64, num_warps=4, num_stages=3,
        )  # fmt: skip
        join[(batch * heads,)](
            parts, peaks, sums, o, lse, size, pieces, SIZE=padded, PIECES=triton.next_power_of_2(pieces)
        )
        return o, lse
