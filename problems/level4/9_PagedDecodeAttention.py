"""One decoding step of attention over a paged key and value cache, in float16.

Token t of sequence s lies in block b = block_tables[s, t / block_size] (rounded down), at place t % block_size. For
sequence s, query head h and kv head g = floor(h * num_kv_heads / num_heads):

    o[s, h] = sum over t < seq_lens[s] of p[t] * v_cache[b, place, g]
    p = softmax over t < seq_lens[s] of (q[s, h] . k_cache[b, place, g] / sqrt(head_dim))

q and o are (num_seqs, num_heads, head_dim), float16; k_cache and v_cache are (num_seqs * max_blocks, block_size,
num_kv_heads, head_dim), float16; block_tables is (num_seqs, max_blocks), int32, and no block number occurs twice in
it; seq_lens is (num_seqs,), int32, in [1, max_blocks * block_size]; all contiguous. Table entries past the end of a
sequence are block numbers as well; what lies there must not count. num_kv_heads divides num_heads. `forward` takes (q,
k_cache, v_cache, block_tables, seq_lens). The reference computes in float32 and rounds once. All six sizes vary
between cases. There are no parameters.
"""

import math

import torch
import torch.nn as nn

num_seqs = 32
num_heads = 32
num_kv_heads = 8
head_dim = 128
block_size = 16
max_blocks = 256

CASES: dict[str, dict] = {
    "cpu": {"num_seqs": 6, "num_heads": 8, "num_kv_heads": 2, "head_dim": 64, "max_blocks": 30},
    "odd": {"num_seqs": 5, "num_heads": 15, "num_kv_heads": 3, "head_dim": 33, "block_size": 7, "max_blocks": 19},
    "single": {"num_seqs": 1, "num_heads": 8, "num_kv_heads": 1, "head_dim": 96, "block_size": 32, "max_blocks": 40},
}
TAGS: tuple[str, ...] = ("attention", "decode", "irregular")

# Not the others: scores reach 10^2 and more, so that one weight is 1 and near ties would be settled by rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def forward(
        self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_tables: torch.Tensor,
        seq_lens: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        wide = torch.promote_types(q.dtype, torch.float32)
        k, v = (cache[block_tables.long()].flatten(1, 2).permute(0, 2, 1, 3).to(wide) for cache in (k_cache, v_cache))
        grouped = q.to(wide).unflatten(1, (k.shape[1], -1))
        scores = grouped @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        past_end = torch.arange(k.shape[2], device=q.device) >= seq_lens[:, None]
        weights = torch.softmax(scores.masked_fill(past_end[:, None, None], float("-inf")), dim=-1)
        return (weights @ v).flatten(1, 2).to(q.dtype)


def get_inputs() -> list[torch.Tensor]:
    # Queries are wide, so that a few keys have most of the weight and long sequences do not average away.
    q = (2.5 * torch.randn(num_seqs, num_heads, head_dim)).half()
    blocks = num_seqs * max_blocks
    k_cache, v_cache = (torch.randn(blocks, block_size, num_kv_heads, head_dim).half() for _ in range(2))
    block_tables = torch.randperm(blocks).int().reshape(num_seqs, max_blocks)
    seq_lens = torch.randint(1, max_blocks * block_size + 1, (num_seqs,), dtype=torch.int32)
    return [q, k_cache, v_cache, block_tables, seq_lens]


def get_init_inputs() -> list:
    return []
