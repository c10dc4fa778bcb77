"""Whether the scene changes between two frames, from their differences and their histograms. Three scalars.

    sad_score = mean |frame1 - frame2| / max(mean |frame1|, 1e-6)
    h1[b], h2[b] = share of the pixels v of frame1, frame2 with b <= 32 v < b + 1,    b = 0 .. 31
    hist_diff = 1/2 sum over b of (h1[b] - h2[b])^2 / (h1[b] + h2[b] + 1e-10)
    is_scene_change = sad_score > sad_threshold or hist_diff > hist_threshold

Both frames are (frame_height, frame_width), float32, contiguous; pixels are k / 256, k whole, 0 <= k <= 255, so that
none lies between two bins by rounding. `forward` returns the tuple (is_scene_change, sad_score, hist_diff): a bool and
two float32 tensors, all without dimensions. The constructor takes sad_threshold and hist_threshold; no score comes near
its threshold. The frame sizes vary between cases. There are no parameters.
Differs from kernrl: bins of equal width; the edge measure, which was computed and not used, is left out; a third of the
pairs each show one scene, a cut or a fade, with brightness drawn at random.
"""

import torch
import torch.nn as nn

frame_height = 4096
frame_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 720, "frame_width": 1024},
    "odd": {"frame_height": 321, "frame_width": 407},
    "strip": {"frame_height": 1, "frame_width": 70_000},
}
TAGS: tuple[str, ...] = ("histogram", "video")

# Pixels lie on a grid between 0 and 1: that keeps bins and decision out of reach of rounding.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, sad_threshold: float = 0.3, hist_threshold: float = 0.5):
        super().__init__()
        self.sad_threshold = sad_threshold
        self.hist_threshold = hist_threshold

    def forward(self, frame1: torch.Tensor, frame2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        sad_score = (frame1 - frame2).abs().mean() / frame1.abs().mean().clamp(min=1e-6)
        h1, h2 = (torch.histc(frame, bins=32, min=0, max=1) / frame.numel() for frame in (frame1, frame2))
        hist_diff = ((h1 - h2) ** 2 / (h1 + h2 + 1e-10)).sum() / 2
        return (sad_score > self.sad_threshold) | (hist_diff > self.hist_threshold), sad_score, hist_diff


def get_inputs() -> list[torch.Tensor]:
    shape = (2, frame_height, frame_width)
    light = torch.linspace(0.6, 1, frame_height)[:, None] * torch.linspace(0.8, 1, frame_width)
    exponents = torch.tensor([0.5, 1.3])[:, None, None] + 0.5 * torch.rand(2, 1, 1)
    one, other = torch.floor(256 * light * torch.rand(shape) ** exponents)
    change, haze, kind = torch.randint(-4, 5, shape[1:]) + torch.randint(2, 9, ()), 224 + one // 16, torch.rand(())
    first = torch.where(kind < 1 / 3, haze, one)
    second = torch.where(kind < 1 / 3, haze - 48 + change, torch.where(kind < 2 / 3, other, one + change))
    frames = torch.stack([first, second])
    return [frame.contiguous() for frame in frames.clamp(0, 255) / 256]


def get_init_inputs() -> list:
    return [0.3, 0.5]
