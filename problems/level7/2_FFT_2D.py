"""Two-dimensional discrete Fourier transform of a real image, all frequencies.

    y[k, l] = sum over r, c of image[r, c] * exp(-2 pi i (k r / H + l c / W)),    k < H,    l < W

image is (image_height, image_width) = (H, W), float32, contiguous; y has the same shape and is complex64. It is not
normalised, and the half of y that follows by symmetry, y[-k, -l] = conj(y[k, l]), is part of the output. Both sizes
vary between cases; their prime factors are 2, 3, 5 and 7 only. There are no parameters.
Differs from kernrl: a larger image.
"""

import torch
import torch.nn as nn

image_height = 8192
image_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"image_height": 1024, "image_width": 768},
    "odd": {"image_height": 315, "image_width": 441},
    "strip": {"image_height": 6, "image_width": 16384},
}
TAGS: tuple[str, ...] = ("transform", "signal", "image")

# No "offset": its mean gives y[0, 0] = 4 H W beside values of about sqrt(H W), and its rounding would set the budget.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "wide")


class Model(nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft2(image)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return []
