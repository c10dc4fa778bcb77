"""Cross-correlation of an image with a template, at every position of the image.

    y[i, j] = sum over r, c of template[0, 0, r, c] * p[i + r - template_height // 2, j + c - template_width // 2]

p is the image, 0 outside of it. image and y are (image_height, image_width), float32, contiguous. The buffer `template`
is (1, 1, template_height, template_width), float32, drawn at random by the constructor, which takes its two sizes; both
are odd. All four sizes vary between cases.
Differs from kernrl: odd template sizes (with even ones the output is one larger than the image), a larger image.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 2048
image_width = 2048
template_height = 31
template_width = 31

CASES: dict[str, dict] = {
    "cpu": {"image_height": 192, "image_width": 256},
    "odd": {"image_height": 127, "image_width": 209, "template_height": 15, "template_width": 9},
    "strip": {"image_height": 9, "image_width": 2000, "template_height": 17, "template_width": 33},
}
TAGS: tuple[str, ...] = ("conv", "signal", "image")


class Model(nn.Module):
    def __init__(self, template_height: int = 32, template_width: int = 32):
        super().__init__()
        self.padding = (template_height // 2, template_width // 2)
        self.register_buffer("template", torch.randn(1, 1, template_height, template_width))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.conv2d(image[None, None], self.template, padding=self.padding)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [template_height, template_width]
