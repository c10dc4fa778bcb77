"""Histogram equalisation of an 8-bit grey image, in integers.

    count[v] = number of pixels with value v,    cdf[v] = count[0] + ... + count[v]
    least = cdf[v] of the least v that occurs,    rest = max(image_height * image_width - least, 1)
    table[v] = floor((255 * (cdf[v] - least) + floor(rest / 2)) / rest)
    equalized[i, j] = table[image[i, j]]

image and equalized are (image_height, image_width), uint8, contiguous. Mean and contrast differ from image to image;
neighbouring pixels are similar. Both sizes vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

image_height = 8192
image_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"image_height": 960, "image_width": 1280},
    "odd": {"image_height": 211, "image_width": 405},
    "strip": {"image_height": 1, "image_width": 20_000},
}
TAGS: tuple[str, ...] = ("histogram", "image", "atomics")


class Model(nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        values = image.flatten().long()
        cdf = torch.bincount(values, minlength=256).cumsum(dim=0)
        least = cdf[values.min()]
        rest = (values.numel() - least).clamp(min=1)
        table = (255 * (cdf - least) + rest // 2) // rest
        return table.clamp(min=0).to(torch.uint8)[values].view_as(image)


def get_inputs() -> list[torch.Tensor]:
    patches = torch.randn(image_height // 16 + 1, image_width // 16 + 1)
    patches = patches.repeat_interleave(16, dim=0).repeat_interleave(16, dim=1)[:image_height, :image_width]
    mean, contrast = 80 + 100 * torch.rand(()), 10 + 20 * torch.rand(())
    grey = mean + contrast * (patches + 0.5 * torch.randn(image_height, image_width))
    return [grey.round().clamp(0, 255).to(torch.uint8)]


def get_init_inputs() -> list:
    return []
