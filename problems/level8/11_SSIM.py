"""Structural similarity (SSIM) of pairs of frames: the map, and its mean over each frame.

    E(f)[i, j] = sum over r, c = 0 .. 10 of window[0, 0, r, c] * f[i + r, j + c]
    m1 = E(frame1),  m2 = E(frame2),  v1 = E(frame1^2) - m1^2,  v2 = E(frame2^2) - m2^2,  v12 = E(frame1 frame2) - m1 m2
    map = (2 m1 m2 + 0.01^2) (2 v12 + 0.03^2) / ((m1^2 + m2^2 + 0.01^2) (v1 + v2 + 0.03^2)),    mean[t] = mean of map[t]

frame1 and frame2 are (num_frames, frame_height, frame_width), float32, contiguous. `forward` returns the tuple (map,
mean): map is (num_frames, frame_height - 10, frame_width - 10), mean is (num_frames,), float32. The buffer `window` is
(1, 1, 11, 11): a Gaussian of standard deviation 1.5 (the product of one along rows and one along columns) that sums to
1. The three sizes vary between cases.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_frames = 4
frame_height = 1080
frame_width = 1920

CASES: dict[str, dict] = {
    "cpu": {"num_frames": 6, "frame_height": 96, "frame_width": 128},
    "odd": {"num_frames": 3, "frame_height": 71, "frame_width": 95},
    "strip": {"num_frames": 7, "frame_height": 11, "frame_width": 600},
}
HIDDEN: dict[str, dict] = {"other": {"num_frames": 2, "frame_height": 123, "frame_width": 87}}
TAGS: tuple[str, ...] = ("stencil", "video", "image")

# The constants steady variances and ratios for pixels of about this size: wider or brighter ones leave mostly rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        profile = torch.exp(-((torch.arange(11) - 5) ** 2) / (2 * 1.5**2))
        window = torch.outer(profile, profile)
        self.register_buffer("window", (window / window.sum())[None, None])

    def average(self, frames: torch.Tensor) -> torch.Tensor:
        return F.conv2d(frames[:, None], self.window)[:, 0]

    def forward(self, frame1: torch.Tensor, frame2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        c1, c2 = 0.01**2, 0.03**2
        m1, m2 = self.average(frame1), self.average(frame2)
        v1 = self.average(frame1**2) - m1**2
        v2 = self.average(frame2**2) - m2**2
        v12 = self.average(frame1 * frame2) - m1 * m2
        map = (2 * m1 * m2 + c1) * (2 * v12 + c2) / ((m1**2 + m2**2 + c1) * (v1 + v2 + c2))
        return map, map.mean(dim=(1, 2))


def get_inputs() -> list[torch.Tensor]:
    shape = (num_frames, frame_height, frame_width)
    coarse = torch.randn(num_frames, 1, frame_height // 4 + 2, frame_width // 4 + 2)
    frame1 = F.interpolate(coarse, size=shape[1:], mode="bilinear")[:, 0] + 0.2 * torch.randn(shape)
    strength = (
        4 * torch.rand(num_frames, 1, 1) ** 2 * torch.linspace(0.2, 1, frame_width)
    )  # another quality in every frame
    return [frame1, frame1 + strength * torch.randn(shape)]


def get_init_inputs() -> list:
    return []
