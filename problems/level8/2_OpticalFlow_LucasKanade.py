"""Dense optical flow between two frames (Lucas and Kanade): least squares over a square window around each pixel.

    X = sobel_x * (frame1 + frame2) / 2,    Y = sobel_y * (frame1 + frame2) / 2,    T = frame2 - frame1
    a = S(X X),  b = S(X Y),  c = S(Y Y),  d = S(X T),  e = S(Y T),    det = a c - b b
    flow_u = (b e - c d) / det,    flow_v = (b d - a e) / det,    both 0 where |det| <= 1e-6

`sobel * f` at [i, j] is the sum over r, s in 0..2 of sobel[0, 0, r, s] * f[i + r - 1, j + s - 1], f being 0 outside of
the frame. S sums over the window_size x window_size pixels around one; beyond the border X, Y and T are mirrored
without repeating the border: column -1 is column 1. Frames and flows are (frame_height, frame_width), float32,
contiguous. `forward` returns the tuple (flow_u, flow_v). The buffers `sobel_x` and `sobel_y` are (1, 1, 3, 3):
[-1 0 1; -2 0 2; -1 0 1] and its transpose. The constructor takes window_size, which is odd; both sides of the frame
are longer than window_size // 2. Frame size and window_size vary between cases. No det comes near 1e-6.
Differs from kernrl, whose reference does not run: frame2 is frame1 moved, and the frames are larger.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 1440
frame_width = 2560
window_size = 15

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 144, "frame_width": 176},
    "odd": {"frame_height": 91, "frame_width": 117, "window_size": 9},
    "strip": {"frame_height": 8, "frame_width": 1500},
}
TAGS: tuple[str, ...] = ("stencil", "video")


class Model(nn.Module):
    def __init__(self, window_size: int = 15):
        super().__init__()
        self.window_size = window_size
        sobel_x = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.register_buffer("sobel_x", sobel_x.reshape(1, 1, 3, 3))
        self.register_buffer("sobel_y", sobel_x.T.reshape(1, 1, 3, 3).contiguous())

    def forward(self, frame1: torch.Tensor, frame2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        middle = ((frame1 + frame2) / 2)[None, None]
        x = F.conv2d(middle, self.sobel_x, padding=1)[0, 0]
        y = F.conv2d(middle, self.sobel_y, padding=1)[0, 0]
        t = frame2 - frame1
        products = F.pad(torch.stack([x * x, x * y, y * y, x * t, y * t]), [self.window_size // 2] * 4, mode="reflect")
        a, b, c, d, e = F.avg_pool2d(products, self.window_size, stride=1, divisor_override=1)
        det = a * c - b * b
        solvable = det.abs() > 1e-6
        flow_u, flow_v = (b * e - c * d) / det, (b * d - a * e) / det
        return torch.where(solvable, flow_u, 0.0), torch.where(solvable, flow_v, 0.0)


def get_inputs() -> list[torch.Tensor]:
    shape = (frame_height, frame_width)
    texture = F.avg_pool2d(torch.randn(1, frame_height + 4, frame_width + 4), 3, stride=1)[0]
    centre, sides = texture[1:-1, 1:-1], [texture[1:-1, :-2], texture[1:-1, 2:], texture[:-2, 1:-1], texture[2:, 1:-1]]
    coarse = torch.randn(1, 2, frame_height // 16 + 2, frame_width // 16 + 2)
    u, v = 0.3 * F.interpolate(coarse, size=shape, mode="bilinear")[0]
    moved = centre.clone()
    for weight, side in zip([u, -u, v, -v], sides, strict=True):  # a fraction of a pixel to one of the four sides
        moved += weight.clamp(min=0) * (side - centre)
    return [centre.contiguous(), moved]


def get_init_inputs() -> list:
    return [window_size]
