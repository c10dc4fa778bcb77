"""Colour of a video frame brought to full resolution (YUV 4:2:0 to 4:4:4, bilinear) and its luma to full range.

    y[i, j] = (y_full[i, j] - 16 / 255) * 255 / 219
    a = max(0, (i + 0.5) * h / H - 0.5),    r = floor(a),    R = min(r + 1, h - 1),    s = a - r
    b = max(0, (j + 0.5) * w / W - 0.5),    c = floor(b),    C = min(c + 1, w - 1),    t = b - c
    full[i, j] = (1 - s) (1 - t) half[r, c] + (1 - s) t half[r, C] + s (1 - t) half[R, c] + s t half[R, C]

for U and V alike. y_full is (frame_height, frame_width) = (H, W), u_half and v_half are (H // 2, W // 2) = (h, w), all
float32 and contiguous. `forward` returns the tuple (y, u_full, v_full), each (H, W), float32. The sizes vary between
cases; with odd H or W the ratio is not quite 2. There are no parameters.
Differs from kernrl: luma is stretched from video range, 16 to 235 of 255, instead of returned unchanged; signed
pixels, a larger frame.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 8192
frame_width = 8192

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 1080, "frame_width": 960},
    "odd": {"frame_height": 107, "frame_width": 167},
    "strip": {"frame_height": 2, "frame_width": 8000},
}
TAGS: tuple[str, ...] = ("interpolation", "video", "image")


class Model(nn.Module):
    def forward(
        self, y_full: torch.Tensor, u_half: torch.Tensor, v_half: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        size = y_full.shape
        u_full = F.interpolate(u_half[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]
        v_full = F.interpolate(v_half[None, None], size=size, mode="bilinear", align_corners=False)[0, 0]
        return (y_full - 16 / 255) * 255 / 219, u_full, v_full


def get_inputs() -> list[torch.Tensor]:
    half = (frame_height // 2, frame_width // 2)
    return [torch.randn(frame_height, frame_width), torch.randn(half), torch.randn(half)]


def get_init_inputs() -> list:
    return []
