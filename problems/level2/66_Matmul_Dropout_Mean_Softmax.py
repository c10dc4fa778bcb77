"""A linear layer, dropout whose mask is a hash of position and seed, the mean of each row, and softmax over the batch.

    z = x W^T + bias
    d[b, j] = z[b, j] / (1 - dropout_p) if hash((b * out_features + j) xor seed) >= floor(dropout_p * 2^32), else 0
    m[b] = 1 / out_features * sum over j of d[b, j]
    y[b, 0] = exp(m[b] - M) / sum over k of exp(m[k] - M),    M = max over k of m[k]

hash(n) is the final mix of MurmurHash3 on unsigned 32-bit integers (products modulo 2^32):

    n ^= n >> 16;  n *= 2246822507;  n ^= n >> 13;  n *= 3266489909;  n ^= n >> 16

x is (batch_size, in_features), W (`matmul.weight`) is (out_features, in_features), bias (`matmul.bias`) is
(out_features,), y is (batch_size, 1), all float32 and contiguous; seed is (1,), int64, from 0 to 2^32 - 1, different
in each call. batch_size * out_features is below 2^32. The constructor takes in_features, out_features and dropout_p.
The three sizes and dropout_p vary between cases.
Differs from kernrl: its dropout is random, and its softmax over one number per row is always 1. Here the seed is given
and the softmax runs over the batch; x is drawn with the root of out_features, and the bias wider, so that both matter.
"""

import torch
import torch.nn as nn

batch_size = 1024
in_features = 4096
out_features = 4096
dropout_p = 0.2

CASES: dict[str, dict] = {
    "cpu": {"batch_size": 256, "in_features": 512, "out_features": 1024},
    "odd": {"batch_size": 61, "in_features": 253, "out_features": 509, "dropout_p": 0.35},
    "small": {"batch_size": 128, "in_features": 100, "out_features": 50},
    "few": {"batch_size": 17, "in_features": 64, "out_features": 4000, "dropout_p": 0.5},
}
TAGS: tuple[str, ...] = ("matmul", "fused")


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, dropout_p: float):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        nn.init.normal_(self.matmul.bias)
        self.dropout_p = dropout_p

    def forward(self, x: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
        x = self.matmul(x)
        kept = hash32(torch.arange(x.numel(), device=x.device) ^ seed) >= int(self.dropout_p * 2**32)
        x = torch.where(kept.view_as(x), x / (1 - self.dropout_p), 0.0)
        return torch.softmax(x.mean(dim=1, keepdim=True), dim=0)


def hash32(n: torch.Tensor) -> torch.Tensor:
    """The mix of the statement, in int64 whose low 32 bits are those of the unsigned product."""
    n = ((n ^ (n >> 16)) * 2246822507) & 0xFFFFFFFF
    n = ((n ^ (n >> 13)) * 3266489909) & 0xFFFFFFFF
    return n ^ (n >> 16)


def get_inputs() -> list[torch.Tensor]:
    return [out_features**0.5 * torch.randn(batch_size, in_features), torch.randint(0, 2**32, (1,))]


def get_init_inputs() -> list:
    return [in_features, out_features, dropout_p]
