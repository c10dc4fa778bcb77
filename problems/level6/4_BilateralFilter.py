"""Bilateral filter of a grey image: a mean over a window, weighted by nearness in place and in value.

    w[r, c] = exp(-(r^2 + c^2) / (2 * sigma_spatial^2)) * exp(-(p[i + r, j + c] - p[i, j])^2 / (2 * sigma_range^2))
    filtered[i, j] = (sum over r, c of w[r, c] * p[i + r, j + c]) / (sum over r, c of w[r, c])

with r, c in -R..R, R = kernel_size // 2. p is the image, mirrored outside of it without repeating its edge, so that
p[-1, j] = p[1, j]. image and filtered are (image_height, image_width), float32, contiguous. The constructor takes
kernel_size (odd), sigma_spatial (3.0 in every case) and sigma_range (0.2 in every case). kernel_size and both sizes of
the image vary between cases; those are larger than R. There are no parameters.
Differs from kernrl: signed pixels, in flat patches with noise, a wider range, a larger image, and no loop over pixels.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

image_height = 1024
image_width = 1536
kernel_size = 9
sigma_spatial = 3.0
sigma_range = 0.2

CASES: dict[str, dict] = {
    "cpu": {"image_height": 120, "image_width": 160},
    "odd": {"image_height": 101, "image_width": 151, "kernel_size": 7},
    "strip": {"image_height": 5, "image_width": 3000},
}
TAGS: tuple[str, ...] = ("stencil", "image")

# No "wide": with pixels that far apart the filter gives back its input.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 9, sigma_spatial: float = 3.0, sigma_range: float = 0.1):
        super().__init__()
        self.kernel_size = kernel_size
        self.sigma_spatial = sigma_spatial
        self.sigma_range = sigma_range

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        radius = self.kernel_size // 2
        squares = torch.arange(-radius, radius + 1, device=image.device, dtype=image.dtype).square()
        far = (squares[:, None] + squares) / (2 * self.sigma_spatial**2)
        padded = F.pad(image[None], (radius,) * 4, mode="reflect")[0]
        windows = padded.unfold(0, self.kernel_size, 1).unfold(1, self.kernel_size, 1)
        unlike = (windows - image[:, :, None, None]).square() / (2 * self.sigma_range**2)
        weights = torch.exp(-far - unlike)
        return (weights * windows).sum(dim=(2, 3)) / weights.sum(dim=(2, 3))


def get_inputs() -> list[torch.Tensor]:
    patches = torch.randn(image_height // 16 + 1, image_width // 16 + 1)
    patches = patches.repeat_interleave(16, dim=0).repeat_interleave(16, dim=1)[:image_height, :image_width]
    return [patches + 0.15 * torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [kernel_size, sigma_spatial, sigma_range]
