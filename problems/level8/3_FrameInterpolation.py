"""A frame between two frames, from both of them moved along the optical flow (motion-compensated interpolation).

    (u, v) = flow_01[i, j]
    y[i, j] = (1 - t) S(frame0, i - t v, j - t u) + t S(frame1, i + (1 - t) v, j + (1 - t) u)

S(f, a, b) is f at row a and column b, both clamped to the frame, interpolated bilinearly between its four neighbours.
frame0, frame1 and y are (frame_height, frame_width), flow_01 is (frame_height, frame_width, 2) with u (to the right)
before v (down), in pixels; t is a tensor without dimensions, 0 < t < 1. All are float32 and contiguous. Both sides of a
frame are at least 2. The sizes vary between cases. There are no parameters.
Differs from kernrl: a flow of 1 is one pixel (there (W - 1) / W of one), t is a drawn tensor; signed pixels.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 4096
frame_width = 4096

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 320, "frame_width": 400},
    "odd": {"frame_height": 93, "frame_width": 205},
    "strip": {"frame_height": 3, "frame_width": 1000},
}
TAGS: tuple[str, ...] = ("interpolation", "video")

# Flows are in pixels and t lies between 0 and 1: numbers from elsewhere would sample nothing but the border.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(
        self, frame0: torch.Tensor, frame1: torch.Tensor, flow_01: torch.Tensor, t: torch.Tensor
    ) -> torch.Tensor:
        return (1 - t) * sample(frame0, -t * flow_01) + t * sample(frame1, (1 - t) * flow_01)


def sample(frame: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """The frame at each pixel's place plus its offset (H, W, 2), clamped to the frame."""
    height, width = frame.shape
    y = torch.arange(height, device=frame.device)[:, None] + offset[..., 1]
    x = torch.arange(width, device=frame.device) + offset[..., 0]
    grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)
    return F.grid_sample(frame[None, None], grid[None], mode="bilinear", padding_mode="border", align_corners=True)[
        0, 0
    ]


def get_inputs() -> list[torch.Tensor]:
    coarse = torch.randn(1, 2, frame_height // 3 + 2, frame_width // 3 + 2)
    scenes = F.interpolate(coarse, size=(frame_height, frame_width), mode="bicubic")[0]
    frame0, frame1 = scenes + 0.3 * torch.randn(scenes.shape)  # without, few of their pixels would tell the others
    flow_01 = 5 * torch.randn(frame_height, frame_width, 2)
    return [frame0.contiguous(), frame1.contiguous(), flow_01, 0.1 + 0.8 * torch.rand(())]


def get_init_inputs() -> list:
    return []
