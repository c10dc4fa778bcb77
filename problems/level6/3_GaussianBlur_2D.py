"""Gaussian blur of a grey image.

    kernel[r, c] = g[r] * g[c] / (sum over s of g[s])^2,    g[r] = exp(-(r - R)^2 / (2 * sigma^2))
    blurred[i, j] = sum over r, c in 0..2R of kernel[r, c] * image[i + r - R, j + c - R],    R = kernel_size // 2

with image = 0 outside. image and blurred are (image_height, image_width), the buffer `kernel` is (1, 1, kernel_size,
kernel_size), all float32 and contiguous. The constructor takes kernel_size (odd) and sigma (3.0 in every case). The
kernel is always such a product, so the blur may be done along rows and columns in turn. kernel_size and both sizes of
the image vary between cases.
Differs from kernrl: signed pixels, a larger image, and only two dimensions.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 4096
image_width = 6144
kernel_size = 15
sigma = 3.0

CASES: dict[str, dict] = {
    "cpu": {"image_height": 320, "image_width": 400},
    "odd": {"image_height": 211, "image_width": 405, "kernel_size": 11},
    "strip": {"image_height": 4, "image_width": 10_000},
}
HIDDEN: dict[str, dict] = {"other": {"image_height": 173, "image_width": 291, "kernel_size": 13}}
TAGS: tuple[str, ...] = ("stencil", "image")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 15, sigma: float = 3.0):
        super().__init__()
        self.padding = kernel_size // 2
        g = torch.exp(-((torch.arange(kernel_size) - self.padding) ** 2) / (2 * sigma**2))
        g = g / g.sum()
        self.register_buffer("kernel", torch.outer(g, g)[None, None])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.conv2d(image[None, None], self.kernel, padding=self.padding)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [kernel_size, sigma]
