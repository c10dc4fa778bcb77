"""Wiener deconvolution: the image that was blurred with a known kernel, estimated in the frequency domain.

    h = kernel_size // 2
    k[r, c] = blur_kernel[(r + h) mod H, (c + h) mod W] where that index is inside the kernel, else 0
    G = DFT2(blurred),    K = DFT2(k),    q = noise_var / (var(blurred) + 1e-10)
    y = real(inverse DFT2(G * conj(K) / (|K|^2 + q)))

DFT2 is the unnormalised forward transform, the inverse divides by H * W; var is the unbiased variance over the whole
image (divided by H * W - 1). blurred and y are (image_height, image_width) = (H, W), float32, contiguous. The
constructor takes kernel_size (odd) and noise_var and makes the buffer `blur_kernel`, (kernel_size, kernel_size): a
Gaussian of standard deviation kernel_size / 6 that sums to 1. The sizes of image and kernel vary between cases,
noise_var does not. The image's sides are at least kernel_size, with the prime factors 2, 3, 5 and 7 only.
Differs from kernrl: the kernel is centred (there it is off by one pixel); signed inputs, a larger image.
"""

import torch
import torch.nn as nn

image_height = 4096
image_width = 4096
kernel_size = 15
noise_var = 0.01

CASES: dict[str, dict] = {
    "cpu": {"image_height": 512, "image_width": 384},
    "odd": {"image_height": 189, "image_width": 175, "kernel_size": 9},
    "strip": {"image_height": 16, "image_width": 4096},
}
TAGS: tuple[str, ...] = ("transform", "signal", "image")

# No "wide": its variance makes q so small that the rounding of K, magnified by 1 / sqrt(q), drowns the result.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 15, noise_var: float = 0.01):
        super().__init__()
        self.noise_var = noise_var
        profile = torch.exp(-((torch.arange(kernel_size) - kernel_size // 2) ** 2) / (2 * (kernel_size / 6) ** 2))
        kernel = torch.outer(profile, profile)
        self.register_buffer("blur_kernel", kernel / kernel.sum())

    def forward(self, blurred: torch.Tensor) -> torch.Tensor:
        size = self.blur_kernel.shape[0]
        centred = torch.zeros_like(blurred)
        centred[:size, :size] = self.blur_kernel
        centred = torch.roll(centred, (-(size // 2), -(size // 2)), dims=(0, 1))
        response = torch.fft.fft2(centred)
        inverse_snr = self.noise_var / (blurred.var() + 1e-10)
        gain = response.conj() / (response.abs() ** 2 + inverse_snr)
        return torch.fft.ifft2(torch.fft.fft2(blurred) * gain).real


def get_inputs() -> list[torch.Tensor]:
    return [0.5 + 2 * torch.randn(image_height, image_width)]


def get_init_inputs() -> list:
    return [kernel_size, noise_var]
