"""Self-attention over the pixels of feature maps, with residual and layer normalisation.

The pixels of a map are its L = image_height * image_width tokens, in row order, each a vector of embed_dim channels.
For a token t_i of one map, W = `attn.in_proj_weight` (rows: queries, then keys, then values) and b =
`attn.in_proj_bias`:

    [q_i, k_i, v_i] = W t_i + b,     each of the three cut into num_heads heads of d = embed_dim / num_heads
    a_i = concatenation over the heads of sum over j of softmax over j of (q_i . k_j / sqrt(d)) * v_j
    z_i = t_i + `attn.out_proj.weight` a_i + `attn.out_proj.bias`
    y_i = (z_i - mean(z_i)) / sqrt(var(z_i) + 1e-5) * `norm.weight` + `norm.bias`

mean and (biased) var are over the channels of one token. x and y are (batch_size, embed_dim, image_height,
image_width); W is (3 embed_dim, embed_dim), its bias (3 embed_dim,), `attn.out_proj.weight` (embed_dim, embed_dim),
`norm.weight` and the other biases (embed_dim,), all float32 and contiguous. The constructor takes embed_dim and
num_heads, which divides embed_dim. All five sizes vary between cases.
Differs from kernrl: smaller images, because the reference holds the scores of all pairs of pixels.
"""

import torch
import torch.nn as nn

embed_dim = 128
num_heads = 4
batch_size = 4
num_channels = embed_dim
image_height = 64
image_width = 64

CASES: dict[str, dict] = {
    "cpu": {"embed_dim": 64, "image_height": 20, "image_width": 24},
    "odd": {"embed_dim": 39, "num_heads": 3, "batch_size": 3, "image_height": 13, "image_width": 11},
    "strip": {"embed_dim": 32, "num_heads": 1, "batch_size": 1, "image_height": 1, "image_width": 300},
}
TAGS: tuple[str, ...] = ("attention", "image")

# No "wide": scores of 10^5 leave one weight of 1, and where two scores nearly tie, rounding picks it.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(2).permute(2, 0, 1)
        attended, _ = self.attn(tokens, tokens, tokens)
        y = self.norm(attended + tokens)
        return y.permute(1, 2, 0).reshape(x.shape).contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [1.5 * torch.randn(batch_size, num_channels, image_height, image_width)]


def get_init_inputs() -> list:
    return [embed_dim, num_heads]
