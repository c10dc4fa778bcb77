"""Integer transform of 8x8 blocks (a scaled DCT, as in HEVC), quantisation and zig-zag scan of a residual frame.

For the block X of rows 8 m .. 8 m + 7 and columns 8 n .. 8 n + 7, with the 8x8 matrix TRANSFORM = C below:

    t[r, v] = (sum over c of X[r, c] C[v, c] + 2) >> 2,    w[u, v] = (sum over r of C[u, r] t[r, v] + 256) >> 9
    shift = 18 + qp // 6
    level[u, v] = sign(w[u, v]) * ((|w[u, v]| * SCALES[qp mod 6] + (171 << (shift - 9))) >> shift)
    y[m * columns + n, z] = level at the place ZIGZAG[z] = 8 u + v

`>>` rounds down. No sum or product leaves int32. residual is (frame_height, frame_width) = (H, W), int16, contiguous,
between -255 and 255; y is (rows * columns, 64), int16, with rows = ceil(H / 8) and columns = ceil(W / 8): a block that
reaches over the border repeats the last row or column. ZIGZAG runs along the diagonals u + v = 0, 1, 2, ..., from
bottom left to top right on the even ones and back on the odd ones: (0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), ...
The constructor takes qp, 0 <= qp <= 51. Frame size and qp vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

frame_height = 4096
frame_width = 8192
qp = 22

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 360, "frame_width": 640},
    "odd": {"frame_height": 203, "frame_width": 149, "qp": 27},
    "fine": {"frame_height": 64, "frame_width": 72, "qp": 5},
    "strip": {"frame_height": 3, "frame_width": 2001, "qp": 12},
}
TAGS: tuple[str, ...] = ("transform", "video", "quantized")

TRANSFORM = (
    (64, 64, 64, 64, 64, 64, 64, 64),
    (89, 75, 50, 18, -18, -50, -75, -89),
    (83, 36, -36, -83, -83, -36, 36, 83),
    (75, -18, -89, -50, 50, 89, 18, -75),
    (64, -64, -64, 64, 64, -64, -64, 64),
    (50, -89, 18, 75, -75, -18, 89, -50),
    (36, -83, 83, -36, -36, 83, -83, 36),
    (18, -50, 75, -89, 89, -75, 50, -18),
)
SCALES = (26214, 23302, 20560, 18396, 16384, 14564)
ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))


class Model(nn.Module):
    def __init__(self, qp: int):
        super().__init__()
        self.scale = SCALES[qp % 6]
        self.shift = 18 + qp // 6

    def forward(self, residual: torch.Tensor) -> torch.Tensor:
        # PyTorch has no integer matrix product on a GPU; float64 holds these sums exactly
        transform = torch.tensor(TRANSFORM, dtype=torch.float64, device=residual.device)
        t = ((blocks_of(residual).double() @ transform.T).int() + 2) >> 2
        w = ((transform @ t.double()).int() + 256) >> 9
        level = (w.abs() * self.scale + (171 << (self.shift - 9))) >> self.shift
        return (level * w.sign()).flatten(1)[:, ZIGZAG].to(residual.dtype)


def blocks_of(frame: torch.Tensor) -> torch.Tensor:
    """The 8x8 blocks of a frame, row by row, (blocks, 8, 8)."""
    rows, columns = (torch.arange(-(-side // 8) * 8, device=frame.device).clamp(max=side - 1) for side in frame.shape)
    whole = frame[rows][:, columns]
    return whole.view(len(rows) // 8, 8, len(columns) // 8, 8).transpose(1, 2).reshape(-1, 8, 8)


def get_inputs() -> list[torch.Tensor]:
    contrast = (
        torch.rand(frame_height // 64 + 1, frame_width // 64 + 1).repeat_interleave(64, 0).repeat_interleave(64, 1)
    )
    noise = torch.randn(frame_height, frame_width) + torch.randn(frame_height, 1) + torch.randn(1, frame_width)
    return [(60 * contrast[:frame_height, :frame_width] * noise).round().clamp(-255, 255).to(torch.int16)]


def get_init_inputs() -> list:
    return [qp]
