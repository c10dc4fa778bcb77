"""Temporal denoising: the middle one of T frames, averaged with the others moved onto it along the optical flow.

    mid = T // 2,    c_t = flows[t] + ... + flows[mid - 1] for t < mid,    else c_t = -(flows[mid] + ... + flows[t - 1])
    (u, v) = c_t[i, j],    w_t[i, j] = exp(-sqrt(u^2 + v^2) / 10),    s_t[i, j] = S(frames[t], i - v, j - u)
    y = (frames[mid] + sum over t != mid of w_t s_t) / (1 + sum over t != mid of w_t)

S(f, a, b) is f at row a and column b, interpolated bilinearly between its four neighbours; a neighbour outside of the
frame counts as 0 (its weight still counts in y). frames is (num_temporal_frames, frame_height, frame_width), flows is
(num_temporal_frames - 1, frame_height, frame_width, 2) with u (to the right) before v (down), in pixels; y is
(frame_height, frame_width). All are float32 and contiguous. The constructor takes num_frames, the T of `frames`. All
three sizes vary between cases; both sides of a frame are at least 2. There are no parameters.
Differs from kernrl: a flow of 1 is one pixel (there (W - 1) / W of one); signed pixels, frames of one scene.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

num_temporal_frames = 5
frame_height = 2160
frame_width = 3840

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 200, "frame_width": 240},
    "odd": {"num_temporal_frames": 3, "frame_height": 93, "frame_width": 151},
    "strip": {"num_temporal_frames": 6, "frame_height": 3, "frame_width": 800},
}
TAGS: tuple[str, ...] = ("interpolation", "video")

# Flows are in pixels: wide ones would leave the frame, and their weights would be nothing.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, num_frames: int = 5):
        super().__init__()
        self.num_frames = num_frames

    def forward(self, frames: torch.Tensor, flows: torch.Tensor) -> torch.Tensor:
        middle = self.num_frames // 2
        total, weights = frames[middle], torch.ones_like(frames[middle])
        for t in range(self.num_frames):
            if t == middle:
                continue
            flow = flows[t:middle].sum(0) if t < middle else -flows[middle:t].sum(0)
            weight = torch.exp(-torch.sqrt((flow**2).sum(-1)) / 10)
            total = total + weight * sample(frames[t], -flow)
            weights = weights + weight
        return total / weights


def sample(frame: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """The frame at each pixel's place plus its offset (H, W, 2), 0 outside of the frame."""
    height, width = frame.shape
    y = torch.arange(height, device=frame.device)[:, None] + offset[..., 1]
    x = torch.arange(width, device=frame.device) + offset[..., 0]
    grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)
    return F.grid_sample(frame[None, None], grid[None], mode="bilinear", padding_mode="zeros", align_corners=True)[0, 0]


def get_inputs() -> list[torch.Tensor]:
    shape = (num_temporal_frames, frame_height, frame_width)
    coarse = torch.randn(1, 1, frame_height // 3 + 2, frame_width // 3 + 2)
    scene = F.interpolate(coarse, size=(frame_height, frame_width), mode="bicubic")[0]
    return [scene + 0.3 * torch.randn(shape), 2 * torch.randn(num_temporal_frames - 1, frame_height, frame_width, 2)]


def get_init_inputs() -> list:
    return [num_temporal_frames]
