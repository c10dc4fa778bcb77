"""Erosion of a grey image: the least pixel of a square window around each.

    eroded[i, j] = min over r, c in -R..R of image[i + r, j + c],    R = kernel_size // 2

over the pixels of the window that lie inside the image. image and eroded are (image_height, image_width), float32,
contiguous. The constructor takes kernel_size (odd). kernel_size and both sizes of the image vary between cases. There
are no parameters.
Differs from kernrl: signed grey pixels, because the erosion of its random black and white image is black everywhere;
other windows and a larger image.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 8192
image_width = 8192
kernel_size = 7

CASES: dict[str, dict] = {
    "cpu": {"image_height": 400, "image_width": 640},
    "odd": {"image_height": 211, "image_width": 405, "kernel_size": 15},
    "strip": {"image_height": 4, "image_width": 20_000, "kernel_size": 11},
}
TAGS: tuple[str, ...] = ("stencil", "image")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 5):
        super().__init__()
        self.kernel_size = kernel_size

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return -F.max_pool2d(-image[None], self.kernel_size, stride=1, padding=self.kernel_size // 2)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [kernel_size]
