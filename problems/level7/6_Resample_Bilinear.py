"""An image resized with bilinear interpolation.

    u = max(0, (i + 0.5) * H / output_height - 0.5),    r = floor(u),    a = u - r,    R = min(r + 1, H - 1)
    v = max(0, (j + 0.5) * W / output_width - 0.5),     c = floor(v),    b = v - c,    C = min(c + 1, W - 1)
    y[i, j] = (1 - a) (1 - b) image[r, c] + (1 - a) b image[r, C] + a (1 - b) image[R, c] + a b image[R, C]

image is (input_height, input_width) = (H, W), y is (output_height, output_width), both float32 and contiguous. There is
no antialiasing: four pixels make one, however much the image shrinks. The constructor takes the output's two sizes. All
four sizes vary between cases, each side up or down; most ratios are exact in float32. There are no parameters.
Differs from kernrl: signed pixels; a larger image, one side of which grows by 4/3 while the other shrinks by 2/3.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

input_height = 12288
input_width = 12288
output_height = 16384
output_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"input_height": 1080, "input_width": 960, "output_height": 540, "output_width": 1280},
    "odd": {"input_height": 609, "input_width": 101, "output_height": 203, "output_width": 167},
    "strip": {"input_height": 1, "input_width": 5000, "output_height": 3, "output_width": 8000},
}
TAGS: tuple[str, ...] = ("interpolation", "signal", "image")


class Model(nn.Module):
    def __init__(self, output_height: int = 1080, output_width: int = 1920):
        super().__init__()
        self.size = (output_height, output_width)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.interpolate(image[None, None], size=self.size, mode="bilinear", align_corners=False)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(input_height, input_width)]


def get_init_inputs() -> list:
    return [output_height, output_width]
