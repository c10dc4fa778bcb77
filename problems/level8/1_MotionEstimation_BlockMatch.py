"""Block matching: for each block of a frame, where it lies in another frame, by full search.

    cost[m, n, dy, dx] = sum over i, j < block_size of |current_frame[m B + i, n B + j] - p[m B + i + dy, n B + j + dx]|

B = block_size, m < H // B, n < W // B; dy and dx run from -search_range to search_range; p is reference_frame, 0
outside of it. `forward` returns the tuple (motion_x, motion_y, sad): the dx, the dy and the value of the least cost of
every block, (H // B, W // B), int32; among equal costs the least dy wins, then the least dx. Both frames are
(frame_height, frame_width) = (H, W), uint8, contiguous; rows and columns beyond the last whole block are left out. The
constructor takes block_size and search_range. Frame size, block_size, search_range and the number of grey levels vary
between cases; with few levels many costs are equal. There are no parameters.
About a third of the blocks have moved, except for a fifth of their pixels. A third are new, so their least cost is not
far below the others. The rest would seem to have moved if only equal pixels counted, but their other pixels are far
off.
Differs from kernrl: pixels and results are integers, because rounding would choose between near-equal costs; blocks
have really moved. The reference there loops over blocks in Python.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

frame_height = 1088
frame_width = 1920
block_size = 16
search_range = 16
grey_levels = 256

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 160, "frame_width": 224, "search_range": 8},
    "odd": {"frame_height": 109, "frame_width": 85, "block_size": 7, "search_range": 5},
    "tied": {"frame_height": 32, "frame_width": 64, "block_size": 4, "search_range": 6, "grey_levels": 2},
    "strip": {"frame_height": 16, "frame_width": 608, "search_range": 16},
}
TAGS: tuple[str, ...] = ("matching", "video")


class Model(nn.Module):
    def __init__(self, block_size: int = 16, search_range: int = 16):
        super().__init__()
        self.block_size = block_size
        self.search_range = search_range

    def forward(
        self, current_frame: torch.Tensor, reference_frame: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        size, reach = self.block_size, self.search_range
        rows, columns = (side // size for side in current_frame.shape)
        current = current_frame[: rows * size, None, : columns * size].short()
        padded = F.pad(reference_frame.short(), [reach] * 4)[:, : columns * size + 2 * reach]
        costs = []
        for top in range(2 * reach + 1):
            shifted = padded[top : top + rows * size].unfold(1, columns * size, 1)  # row, dx, column
            difference = (current - shifted).abs().view(rows, size, -1, columns, size)
            costs.append(difference.sum((1, 4), dtype=torch.int32))
        cost = torch.stack(costs, dim=1).permute(0, 3, 1, 2).flatten(2)  # block row, block column, (dy, dx)
        sad, index = cost.min(dim=2)  # among equal ones, `min` gives the first
        motion_y, motion_x = index // (2 * reach + 1) - reach, index % (2 * reach + 1) - reach
        return motion_x.int(), motion_y.int(), sad


def get_inputs() -> list[torch.Tensor]:
    shape = (frame_height, frame_width)
    reference_frame, noise = torch.randint(0, grey_levels, (2, *shape))
    blocks = (frame_height // block_size + 1, frame_width // block_size + 1)
    motion_y, motion_x = _of_pixels(torch.randint(-search_range, search_range + 1, (2, *blocks)))
    y = (torch.arange(frame_height)[:, None] + motion_y).clamp(0, frame_height - 1)
    x = (torch.arange(frame_width) + motion_x).clamp(0, frame_width - 1)
    moved = reference_frame[y, x]
    far = (moved + grey_levels // 2) % grey_levels
    kind = _of_pixels(torch.randint(0, 3, (1, *blocks)))[0]
    kept = torch.tensor([0.8, 0.0, 0.4])[kind]
    current_frame = torch.where(torch.rand(shape) < kept, moved, torch.where(kind == 2, far, noise))
    return [(frame * (255 // (grey_levels - 1))).to(torch.uint8) for frame in (current_frame, reference_frame)]


def _of_pixels(blocks: torch.Tensor) -> torch.Tensor:
    """(n, rows, columns) of blocks as (n, frame_height, frame_width) of their pixels."""
    pixels = blocks.repeat_interleave(block_size, 1).repeat_interleave(block_size, 2)
    return pixels[:, :frame_height, :frame_width]


def get_init_inputs() -> list:
    return [block_size, search_range]
