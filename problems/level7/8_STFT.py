"""Short-time Fourier transform: windowed spectra of overlapping frames of a real signal.

    y[k, m] = sum over n of window[n] * p[m * hop_length + n] * exp(-2 pi i k n / n_fft),    n = 0 .. n_fft - 1

p is the signal with n_fft // 2 samples added at either end, mirrored without repeating the end samples: p[i] is
signal[|i - n_fft // 2|] at the start, and likewise at the other end. signal is (signal_length,), float32, contiguous.
y is (n_fft // 2 + 1, frames), complex64, not normalised, with frames = 1 + (len(p) - n_fft) // hop_length; any strides
will do. The buffer `window` is (n_fft,), float32. The constructor takes n_fft, hop_length and the window's name: "hann"
or "hamming" (periodic ones, of period n_fft), any other name means all ones. signal_length, n_fft, hop_length and the
window vary between cases; the prime factors of n_fft are 2, 3, 5 and 7 only.
Differs from kernrl: a longer signal.
"""

import torch
import torch.nn as nn

signal_length = 2**25
n_fft = 1024
hop_length = 256
window = "hann"

CASES: dict[str, dict] = {
    "cpu": {"signal_length": 400_000, "n_fft": 512, "hop_length": 128},
    "odd": {"signal_length": 50_001, "n_fft": 315, "hop_length": 101, "window": "hamming"},
    "apart": {"signal_length": 60_000, "n_fft": 60, "hop_length": 77, "window": "none"},
}
TAGS: tuple[str, ...] = ("transform", "signal")


class Model(nn.Module):
    def __init__(self, n_fft: int = 1024, hop_length: int = 256, window: str = "hann"):
        super().__init__()
        self.n_fft = n_fft
        self.hop_length = hop_length
        kinds = {"hann": torch.hann_window, "hamming": torch.hamming_window}
        self.register_buffer("window", kinds.get(window, torch.ones)(n_fft))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return torch.stft(
            signal,
            n_fft=self.n_fft,
            hop_length=self.hop_length,
            window=self.window,
            center=True,
            pad_mode="reflect",
            return_complex=True,
        )


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(signal_length)]


def get_init_inputs() -> list:
    return [n_fft, hop_length, window]
