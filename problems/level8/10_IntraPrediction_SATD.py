"""Intra mode decision: the best of four predictions of each 8x8 block from its neighbours, by a Hadamard cost.

    X[r, c] = frame[8 m + r, 8 n + c]    pixels of block (m, n)       L[r] = frame[8 m + r, 8 n - 1]    left of it
    A[c] = frame[8 m - 1, 8 n + c]       row above it                 P = frame[8 m - 1, 8 n - 1]       its corner

    mode 0: Y[r, c] = A[c]          mode 2: Y[r, c] = (sum of A + sum of L + 8) >> 4
    mode 1: Y[r, c] = L[r]          mode 3: Y[r, c] = min(max(L[r] + A[c] - P, 0), 255)
    satd = (sum over u, v of |(K (X - Y) K)[u, v]| + 2) >> 2

Pixels outside of the frame are 128. K is the 8x8 Hadamard matrix, K[i, j] = (-1)^(number of bits that i and j share).
`forward` returns the tuple (mode, cost): the mode of the least satd, the lowest among equal ones, and that satd, each
(frame_height // 8, frame_width // 8), int32. frame is (frame_height, frame_width), uint8, contiguous; rows and columns
beyond the last whole block are left out. The frame sizes and the number of grey levels vary between cases; with few
levels many costs are equal. There are no parameters.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 4096
frame_width = 4096
grey_levels = 256

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 360, "frame_width": 640},
    "odd": {"frame_height": 203, "frame_width": 149},
    "tied": {"frame_height": 96, "frame_width": 128, "grey_levels": 2},
    "strip": {"frame_height": 8, "frame_width": 2001},
}
TAGS: tuple[str, ...] = ("matching", "video")


class Model(nn.Module):
    def forward(self, frame: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = (side // 8 for side in frame.shape)
        framed = F.pad(frame[: 8 * rows, : 8 * columns].int(), (1, 0, 1, 0), value=128)
        block = framed[1:, 1:].view(rows, 8, columns, 8).transpose(1, 2)
        above = framed[:-1:8, 1:].reshape(rows, columns, 1, 8)
        left = framed[1:, :-1:8].reshape(rows, 8, columns, 1).transpose(1, 2)
        corner = framed[:-1:8, :-1:8, None, None]
        mean = (above.sum((2, 3), keepdim=True) + left.sum((2, 3), keepdim=True) + 8) >> 4
        predictions = [above, left, mean, (left + above - corner).clamp(0, 255)]
        costs = torch.stack([satd(block - prediction) for prediction in predictions])
        cost, mode = costs.min(dim=0)  # among equal ones, `min` gives the first
        return mode.int(), cost


def satd(difference: torch.Tensor) -> torch.Tensor:
    """Cost of differences (rows, columns, 8, 8). PyTorch has no integer product on a GPU; float32 is exact here."""
    hadamard = torch.ones(1, 1, device=difference.device)
    for _ in range(3):
        hadamard = torch.cat([torch.cat([hadamard, hadamard], 1), torch.cat([hadamard, -hadamard], 1)])
    transformed = hadamard @ difference.float() @ hadamard
    return (transformed.int().abs().sum((2, 3), dtype=torch.int32) + 2) >> 2


def get_inputs() -> list[torch.Tensor]:
    shape = (frame_height // 32 + 1, frame_width // 32 + 1)
    regions = torch.randint(0, 2, (2, *shape)).repeat_interleave(32, 1).repeat_interleave(32, 2)
    along_rows, along_columns = regions[:, :frame_height, :frame_width]
    frame = 128 + 30 * torch.randn(1, frame_width) * along_columns + 30 * torch.randn(frame_height, 1) * along_rows
    frame = (frame + 6 * torch.randn(frame_height, frame_width)).clamp(0, 255)
    step = 256 // grey_levels
    return [(torch.floor(frame / step) * step).to(torch.uint8)]


def get_init_inputs() -> list:
    return []
