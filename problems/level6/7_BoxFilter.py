"""Box filter of a grey image: the mean of a square window around each pixel.

    filtered[i, j] = 1 / K^2 * sum over r, c in -R..R of image[i + r, j + c],    K = kernel_size, R = K // 2

with image = 0 outside, always divided by K^2. image and filtered are (image_height, image_width), the buffer `kernel`,
(1, 1, K, K), holds 1 / K^2 everywhere, all float32 and contiguous. The constructor takes kernel_size (odd). kernel_size
and both sizes of the image vary between cases. Running sums along rows and columns are accurate enough, float32 sums
over the whole image are not.
Differs from kernrl: signed pixels and a larger image.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 4096
image_width = 6144
kernel_size = 11

CASES: dict[str, dict] = {
    "cpu": {"image_height": 400, "image_width": 480},
    "odd": {"image_height": 211, "image_width": 405, "kernel_size": 21},
    "strip": {"image_height": 4, "image_width": 1_500},
}
TAGS: tuple[str, ...] = ("stencil", "image")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 11):
        super().__init__()
        self.padding = kernel_size // 2
        self.register_buffer("kernel", torch.full((1, 1, kernel_size, kernel_size), 1 / kernel_size**2))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.conv2d(image[None, None], self.kernel, padding=self.padding)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [kernel_size]
