"""A frame warped by a homography, as video stabilisation does.

    (a, b, w) = M^-1 (j, i, 1),    y[i, j] = S(frame, b / w, a / w),    M = homography

S(f, r, c) is f at row r and column c, interpolated bilinearly between its four neighbours; a neighbour outside of the
frame counts as 0. frame and y are (frame_height, frame_width), homography is (3, 3), all float32 and contiguous. M
maps places (column, row, 1) of the frame to places of y. It is a small rotation, stretching and shift with a little
perspective: w lies between 0.8 and 1.25. Both sides of a frame are at least 2. The sizes vary between cases. There are
no parameters.
Differs from kernrl: the homography is drawn at random; signed pixels, a larger frame.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 4320
frame_width = 7680

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 360, "frame_width": 480},
    "odd": {"frame_height": 203, "frame_width": 155},
    "strip": {"frame_height": 16, "frame_width": 600},
}
TAGS: tuple[str, ...] = ("interpolation", "video")

# Redrawn numbers make no homography that keeps the frame in view.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(self, frame: torch.Tensor, homography: torch.Tensor) -> torch.Tensor:
        height, width = frame.shape
        i = torch.arange(height, device=frame.device)[:, None].expand(height, width)
        j = torch.arange(width, device=frame.device).expand(height, width)
        target = torch.stack([j, i, torch.ones_like(i)]).to(frame.dtype).flatten(1)
        inverse = torch.linalg.inv_ex(homography).inverse
        a, b, w = (inverse @ target).view(3, height, width)
        grid = torch.stack([2 * (a / w) / (width - 1) - 1, 2 * (b / w) / (height - 1) - 1], dim=-1)
        warped = F.grid_sample(
            frame[None, None], grid[None], mode="bilinear", padding_mode="zeros", align_corners=True
        )  # fmt: skip
        return warped[0, 0]


def get_inputs() -> list[torch.Tensor]:
    coarse = torch.randn(1, 1, frame_height // 8 + 2, frame_width // 8 + 2)
    scene = F.interpolate(coarse, size=(frame_height, frame_width), mode="bicubic")[0, 0]
    frame = scene + 0.3 * torch.randn(frame_height, frame_width)  # without, few of its pixels would tell the others
    angle, stretch, x, y, p, q = (2 * torch.rand(6) - 1).unbind()
    angle, stretch, one = 0.03 * angle, 1 + 0.05 * stretch, torch.ones(())
    cos, sin = stretch * torch.cos(angle), stretch * torch.sin(angle)
    rows = [[cos, -sin, 0.02 * frame_width * x], [sin, cos, 0.02 * frame_height * y]]
    rows.append([0.06 * p / frame_width, 0.06 * q / frame_height, one])
    return [frame.contiguous(), torch.stack([torch.stack(row) for row in rows])]


def get_init_inputs() -> list:
    return []
