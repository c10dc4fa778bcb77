"""Sobel edge detection: strength and direction of the gradient of a grey image. Two outputs.

    gx[i, j] = sum over r, c in 0..2 of sobel_x[r, c] * p[i + r - 1, j + c - 1],    sobel_x = [-1 0 1; -2 0 2; -1 0 1]
    gy[i, j] = sum over r, c in 0..2 of sobel_y[r, c] * p[i + r - 1, j + c - 1],    sobel_y = [-1 -2 -1; 0 0 0; 1 2 1]
    magnitude = sqrt(gx^2 + gy^2)
    angle = atan2(gy, gx), in radians between -pi and pi

p is the image, 0 outside of it. The buffers `sobel_x` and `sobel_y` are (1, 1, 3, 3) and hold the values above; the
constructor takes nothing. image, magnitude and angle are (image_height, image_width), float32, contiguous. `forward`
returns the tuple (magnitude, angle). The two sizes vary between cases.
Pixels are signed multiples of 2^-14, so that gx and gy are exact in float32 in whatever order they are summed: the
angle jumps from pi to -pi where gy crosses 0, and rounding must not decide it.
Differs from kernrl: signed pixels on this grid, and a larger image.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 8192
image_width = 12288

CASES: dict[str, dict] = {
    "cpu": {"image_height": 768, "image_width": 640},
    "odd": {"image_height": 509, "image_width": 1021},
    "strip": {"image_height": 5, "image_width": 40000},
}
HIDDEN: dict[str, dict] = {"other": {"image_height": 411, "image_width": 733}}
TAGS: tuple[str, ...] = ("stencil", "image")

# Any other distribution would bring back pixels whose gy is zero but for rounding, where the angle's sign is chance.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        sobel_x = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("sobel_x", sobel_x.reshape(1, 1, 3, 3))
        self.register_buffer("sobel_y", sobel_x.T.reshape(1, 1, 3, 3).contiguous())

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gx = F.conv2d(image[None, None], self.sobel_x, padding=1)[0, 0]
        gy = F.conv2d(image[None, None], self.sobel_y, padding=1)[0, 0]
        return torch.sqrt(gx * gx + gy * gy), torch.atan2(gy, gx)


def get_inputs() -> list[torch.Tensor]:
    return [torch.round(torch.randn(image_height, image_width) * 2**14) / 2**14]


def get_init_inputs() -> list:
    return []
