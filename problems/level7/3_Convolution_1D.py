"""A long signal filtered with a short kernel, by direct summation (the kernel is not flipped).

    y[n] = sum over k of kernel[0, 0, k] * signal[n + k - kernel_size // 2],    signal is 0 outside of its range

signal and y are (signal_length,), float32, contiguous. The buffer `kernel` is (1, 1, kernel_size), float32, drawn at
random by the constructor, which takes kernel_size. kernel_size is odd. Both sizes vary between cases.
Differs from kernrl: a longer signal.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

signal_length = 2**24
kernel_size = 127

CASES: dict[str, dict] = {
    "cpu": {"signal_length": 120_000},
    "odd": {"signal_length": 100_003, "kernel_size": 33},
    "short": {"signal_length": 50, "kernel_size": 63},
}
HIDDEN: dict[str, dict] = {"other": {"signal_length": 61001, "kernel_size": 75}}
TAGS: tuple[str, ...] = ("conv", "signal")


class Model(nn.Module):
    def __init__(self, kernel_size: int = 127):
        super().__init__()
        self.kernel_size = kernel_size
        self.register_buffer("kernel", torch.randn(1, 1, kernel_size))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return F.conv1d(signal[None, None], self.kernel, padding=self.kernel_size // 2)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(signal_length)]


def get_init_inputs() -> list:
    return [kernel_size]
