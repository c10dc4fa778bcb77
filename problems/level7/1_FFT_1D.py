"""Discrete Fourier transform of a real signal, all frequencies.

    y[k] = sum over n of signal[n] * exp(-2 pi i k n / N),    k = 0 .. N - 1,    N = signal_length

signal is (signal_length,), float32, contiguous; y is (signal_length,), complex64. It is not normalised, and the upper
half of y, the conjugate of the lower one, is part of the output. signal_length varies between cases; its prime
factors are 2, 3, 5 and 7 only. There are no parameters.
Differs from kernrl: a longer signal.
"""

import torch
import torch.nn as nn

signal_length = 2**26

CASES: dict[str, dict] = {
    "cpu": {"signal_length": 1048576},
    "odd": {"signal_length": 11025},
    "mixed": {"signal_length": 151200},
    "small": {"signal_length": 64},
}
TAGS: tuple[str, ...] = ("transform", "signal")

# No "offset": its mean gives y[0] = 4 N beside values of about sqrt(N), and the rounding of y[0] would set the budget.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "wide")


class Model(nn.Module):
    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(signal)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(signal_length)]


def get_init_inputs() -> list:
    return []
