"""Motion compensation: each 16x16 block of a frame fetched from where it was, to a quarter of a pixel (H.264 luma).

With R the reference frame, its border repeated without end, and F(a, b, c, d, e, f) = a - 5 b + 20 c + 20 d - 5 e + f:

    b1[i, j] = F(R[i, j-2], ..., R[i, j+3]),    b = clip((b1 + 16) >> 5)       half a pixel to the right
    h1[i, j] = F(R[i-2, j], ..., R[i+3, j]),    h = clip((h1 + 16) >> 5)       half a pixel down
    j1[i, j] = F(b1[i-2, j], ..., b1[i+3, j]),  j = clip((j1 + 512) >> 10)     both;  clip is to 0 .. 255

Pixel [i, j] of the output lies in block (i // 16, j // 16), which has the motion (x, y) = (motion_x, motion_y) in
quarter pixels. It is the mean (p + q + 1) >> 1 of two samples p, q at [i + (y >> 2), j + (x >> 2)], where R, b, h, j
mean these planes there, and right and down the plane one pixel on:

    y & 3   x & 3 = 0        1           2           3
    0       R, R             R, b        b, b        R right, b
    1       R, h             b, h        b, j        b, h right
    2       h, h             h, j        j, j        j, h right
    3       R down, h        h, b down   j, b down   h right, b down

reference_frame and the output are (frame_height, frame_width), uint8; motion_x and motion_y are (ceil(frame_height /
16), ceil(frame_width / 16)), int32, between -4 * search_range and 4 * search_range; all contiguous. The constructor
takes search_range. Frame size and search_range vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

frame_height = 4096
frame_width = 4096
search_range = 16

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 270, "frame_width": 480},
    "odd": {"frame_height": 203, "frame_width": 135, "search_range": 9},
    "strip": {"frame_height": 5, "frame_width": 3000, "search_range": 3},
}
TAGS: tuple[str, ...] = ("interpolation", "video")

# (plane, down, right) of the two samples; planes are R, b, h, j; the index is 4 (y & 3) + (x & 3)
_R, _B, _H, _J, _DOWN, _RIGHT = (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 1, 0), (0, 0, 1)
_B_DOWN, _H_RIGHT = (1, 1, 0), (2, 0, 1)
FIRST = (_R, _R, _B, _RIGHT, _R, _B, _B, _B, _H, _H, _J, _J, _DOWN, _H, _J, _H_RIGHT)
SECOND = (_R, _B, _B, _B, _H, _H, _J, _H_RIGHT, _H, _J, _J, _H_RIGHT, _H, _B_DOWN, _B_DOWN, _B_DOWN)


class Model(nn.Module):
    def __init__(self, search_range: int = 16):
        super().__init__()
        self.margin = search_range + 4

    def forward(self, reference_frame: torch.Tensor, motion_x: torch.Tensor, motion_y: torch.Tensor) -> torch.Tensor:
        (height, width), device = reference_frame.shape, reference_frame.device
        stack = planes(reference_frame, self.margin)
        x, y = (
            m.long().repeat_interleave(16, 0).repeat_interleave(16, 1)[:height, :width] for m in (motion_x, motion_y)
        )
        origin = self.margin - 2  # where the frame begins in its planes
        row = torch.arange(height, device=device)[:, None] + (y >> 2) + origin
        place = row * stack.shape[2] + torch.arange(width, device=device) + (x >> 2) + origin
        phase = 4 * (y & 3) + (x & 3)
        steps = torch.tensor([stack[0].numel(), stack.shape[2], 1], device=device)
        offsets = (torch.tensor([FIRST, SECOND], device=device) * steps).sum(2)  # (2, 16)
        p, q = (stack.flatten()[place + offset[phase]] for offset in offsets)
        return ((p + q + 1) >> 1).to(torch.uint8)


def planes(frame: torch.Tensor, margin: int) -> torch.Tensor:
    """The planes R, b, h and j around a frame, int32, (4, height + 2 margin - 5, width + 2 margin - 5)."""
    rows, columns = (torch.arange(-margin, n + margin, device=frame.device).clamp(0, n - 1) for n in frame.shape)
    whole = frame[rows][:, columns].int()
    b1, h1 = six_taps(whole, 1), six_taps(whole, 0)
    halves = [(b1[2:-3] + 16) >> 5, (h1[:, 2:-3] + 16) >> 5, (six_taps(b1, 0) + 512) >> 10]
    return torch.stack([whole[2:-3, 2:-3], *(half.clamp(0, 255) for half in halves)])


def six_taps(x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b, c, d, e, f = (x.narrow(dim, k, x.shape[dim] - 5) for k in range(6))
    return a + f - 5 * (b + e) + 20 * (c + d)


def get_inputs() -> list[torch.Tensor]:
    reference_frame = torch.randint(0, 256, (frame_height, frame_width), dtype=torch.uint8)
    blocks = (2, (frame_height + 15) // 16, (frame_width + 15) // 16)
    motion_x, motion_y = torch.randint(-4 * search_range, 4 * search_range + 1, blocks, dtype=torch.int32)
    return [reference_frame, motion_x, motion_y]


def get_init_inputs() -> list:
    return [search_range]
