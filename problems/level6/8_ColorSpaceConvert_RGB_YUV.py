"""Converts colours from RGB to YUV, pixel by pixel.

    yuv[i, j, a] = sum over b of conversion_matrix[a, b] * rgb[i, j, b]

rgb and yuv are (image_height, image_width, 3), the buffer `conversion_matrix` is (3, 3), rows for Y, U and V:
0.299 0.587 0.114, -0.147 -0.289 0.436, 0.615 -0.515 -0.100; all are float32 and contiguous. The constructor takes
nothing. Both sizes vary between cases.
Differs from kernrl: signed values and a larger image.
"""

import torch
import torch.nn as nn

image_height = 6144
image_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"image_height": 960, "image_width": 1280},
    "odd": {"image_height": 211, "image_width": 405},
    "strip": {"image_height": 1, "image_width": 20_000},
}
TAGS: tuple[str, ...] = ("elementwise", "image")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        rows = [[0.299, 0.587, 0.114], [-0.147, -0.289, 0.436], [0.615, -0.515, -0.100]]
        self.register_buffer("conversion_matrix", torch.tensor(rows))

    def forward(self, rgb: torch.Tensor) -> torch.Tensor:
        return rgb @ self.conversion_matrix.T


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width, 3)]


def get_init_inputs() -> list:
    return []
