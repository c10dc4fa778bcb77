"""One decoding step of attention with grouped heads over a key and value cache in 8-bit floating point.

With g = h // (num_heads / num_kv_heads), rounded down:

    s[t] = k_scale[g] / sqrt(head_dim) * q[b, h] . k_cache[b, t, g]
    o[b, h] = v_scale[g] * sum over t < seq_lens[b] of p[t] * v_cache[b, t, g],    p = softmax over t < seq_lens[b] of s

q and o are (batch_size, num_heads, head_dim), bfloat16; k_cache and v_cache are (batch_size, max_len, num_kv_heads,
head_dim), float8_e4m3fn; seq_lens is (batch_size,), int32, in [1, max_len]; k_scale and v_scale are (num_kv_heads,),
float32, positive. All are contiguous. What lies in a cache past the end of its sequence must not count. `forward` takes
(q, k_cache, v_cache, seq_lens, k_scale, v_scale). The reference computes in float32 and rounds once. The sizes vary
between cases. There are no parameters. The timed sizes are those of Llama-3.3-70B on one of four GPUs (16 of 64 query
heads, 2 of 8 kv heads), served with `kv_cache_dtype=fp8` to 32 users.
"""

import math

import torch
import torch.nn as nn

batch_size = 32
num_heads = 16
num_kv_heads = 2
max_len = 16384
head_dim = 128

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 3, "num_heads": 8, "max_len": 1000, "head_dim": 64},
    "odd": {"batch_size": 5, "num_heads": 15, "num_kv_heads": 3, "max_len": 301, "head_dim": 33},
    "single": {"batch_size": 1, "num_heads": 8, "num_kv_heads": 1, "max_len": 4000, "head_dim": 96},
}
HIDDEN: dict[str, dict] = {
    "other": {"batch_size": 2, "num_heads": 12, "num_kv_heads": 4, "max_len": 777, "head_dim": 80}
}
TAGS: tuple[str, ...] = ("attention", "decode", "quantized", "irregular")

DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(
        self, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, seq_lens: torch.Tensor,
        k_scale: torch.Tensor, v_scale: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        wide = torch.promote_types(q.dtype, torch.float32)
        kv_heads = k_cache.shape[2]
        queries = q.to(wide).unflatten(1, (kv_heads, -1))
        scores = queries @ k_cache.to(wide).permute(0, 2, 3, 1)
        scores = scores * (k_scale / math.sqrt(q.shape[-1]))[:, None, None]
        past = torch.arange(k_cache.shape[1], device=q.device) >= seq_lens[:, None]
        weights = torch.softmax(scores.masked_fill(past[:, None, None], float("-inf")), dim=-1)
        o = v_scale[:, None, None] * (weights @ v_cache.to(wide).transpose(1, 2))
        return o.flatten(1, 2).to(q.dtype)


def get_inputs() -> list[torch.Tensor]:
    # Queries are wide, so that a few keys have most of the weight and outputs do not average away.
    q = 3 * torch.randn(batch_size, num_heads, head_dim)
    k, v = (100 * torch.randn(batch_size, max_len, num_kv_heads, head_dim) for _ in range(2))
    caches = [each.clamp(-448, 448).to(torch.float8_e4m3fn) for each in (k, v)]
    seq_lens = torch.randint(max_len // 2, max_len + 1, (batch_size,), dtype=torch.int32)
    return [q.bfloat16(), *caches, seq_lens, *(0.01 * (1 + torch.rand(num_kv_heads)) for _ in range(2))]


def get_init_inputs() -> list:
    return []
