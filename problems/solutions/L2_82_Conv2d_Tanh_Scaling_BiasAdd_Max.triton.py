"""Convolution, tanh and pooling in one kernel: what is pooled away never reaches memory.

A program makes a block of pooled places by a block of channels, one place of the pooling window after the other.
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def conv_tanh_pool(
    x, weight, conv_bias, bias, y, scale, places, channels_out, height, width, pooled_height, pooled_width,
    CHANNELS_IN: tl.constexpr, SIZE: tl.constexpr, POOL: tl.constexpr, PLACES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * PLACES + tl.arange(0, PLACES)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    real, known = place < places, channel < channels_out
    column = place % pooled_width
    row = place // pooled_width % pooled_height
    sample = (place // (pooled_width * pooled_height)).to(tl.int64)
    corner = x + (sample * CHANNELS_IN * height + row * POOL) * width + column * POOL
    taps = weight + channel * (CHANNELS_IN * SIZE * SIZE)
    start = tl.load(conv_bias + channel, mask=known, other=0.0)
    shift = tl.load(bias + channel, mask=known, other=0.0)

    best = tl.full((PLACES, CHANNELS), -float("inf"), tl.float32)
    for window in range(POOL * POOL):
        origin = corner + window // POOL * width + window % POOL
        z = tl.zeros((PLACES, CHANNELS), tl.float32) + start[None, :]
        for c in range(CHANNELS_IN):
            for r in tl.static_range(SIZE):
                for s in tl.static_range(SIZE):
                    pixel = tl.load(origin + (c * height + r) * width + s, mask=real, other=0.0)
                    tap = tl.load(taps + (c * SIZE + r) * SIZE + s, mask=known, other=0.0)
                    z += pixel[:, None] * tap[None, :]
        # tanh from the exponential of -2 |z|, which cannot overflow; near 0 the difference is taken from z itself
        power = tl.exp(-2.0 * tl.abs(z))
        far = (1.0 - power) / (1.0 + power)
        square = z * z
        near = tl.abs(z) * (1.0 + square * (-0.33333333 + square * (0.13333333 - square * 0.053968254)))
        tanh = tl.where(tl.abs(z) < 0.15, near, far)
        best = tl.maximum(best, scale * tl.where(z < 0, -tanh, tanh) + shift[None, :])
    size = pooled_height * pooled_width
    target = (sample[:, None] * channels_out + channel[None, :]) * size + (place % size)[:, None]
    tl.store(y + target, best, mask=real[:, None] & known[None, :])


class ModelNew(nn.Module):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, scaling_factor: float, bias_shape: tuple,
        pool_kernel_size: int,
    ):  # fmt: skip
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor
        self.pool = pool_kernel_size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, channels_in, height, width = x.shape
        channels_out, _, size, _ = self.conv.weight.shape
        pooled_height = (height - size + 1) // self.pool
        pooled_width = (width - size + 1) // self.pool
        y = x.new_empty(samples, channels_out, pooled_height, pooled_width)
        places = samples * pooled_height * pooled_width
        grid = (triton.cdiv(places, 128), triton.cdiv(channels_out, 32))
        conv_tanh_pool[grid](
            x, self.conv.weight, self.conv.bias, self.bias, y, self.scaling_factor, places, channels_out, height, width,
            pooled_height, pooled_width, CHANNELS_IN=channels_in, SIZE=size, POOL=self.pool, PLACES=128, CHANNELS=32,
            num_warps=4,
        )  # fmt: skip
        return y
