"""Deblocking: the edges between blocks of a decoded frame smoothed, where the step is small enough to be an artefact.

For an edge with the pixels p1 p0 | q0 q1 across it:

    if |p0 - q0| < alpha and |p1 - p0| < beta and |q1 - q0| < beta:
        p0 becomes (2 p1 + p0 + q0 + 2) >> 2,    q0 becomes (2 q1 + q0 + p0 + 2) >> 2,    both from the old p0 and q0

First every vertical edge, left of column x = block_size, 2 block_size, ... < W - 1, in every row; then every
horizontal edge, above row y = block_size, 2 block_size, ... < H - 1, in every column, on the result of the first pass.
frame and the output are (frame_height, frame_width) = (H, W), uint8, contiguous. The constructor takes block_size (at
least 4), alpha and beta, in grey levels. Frame size, block_size, alpha and beta vary between cases. There are no
parameters.
Differs from kernrl: integer pixels, so that rounding decides no comparison and the `+ 2` rounds as it should; a frame
that is made of blocks. The reference there loops over pixels in Python.
"""

import torch
import torch.nn as nn

frame_height = 16384
frame_width = 16384
block_size = 8
alpha = 40
beta = 8

CASES: dict[str, dict] = {
    "cpu": {"frame_height": 720, "frame_width": 1280},
    "odd": {"frame_height": 305, "frame_width": 217, "block_size": 5, "alpha": 31, "beta": 10},
    "strip": {"frame_height": 9, "frame_width": 4001, "block_size": 4},
}
TAGS: tuple[str, ...] = ("stencil", "video", "image")


class Model(nn.Module):
    def __init__(self, block_size: int = 8, alpha: int = 40, beta: int = 8):
        super().__init__()
        self.block_size = block_size
        self.alpha = alpha
        self.beta = beta

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        output = frame.clone()
        self.smooth(output)
        self.smooth(output.T)
        return output

    def smooth(self, frame: torch.Tensor) -> None:
        """Filters the vertical edges of a frame in place."""
        size = self.block_size
        at = [frame[:, offset:-1:size] for offset in (size - 2, size - 1, size)]  # -1: no edge at the last column
        count = at[2].shape[1]
        p1, p0, q0 = (pixels[:, :count].short() for pixels in at)
        q1 = frame[:, size + 1 :: size][:, :count].short()
        weak = ((p0 - q0).abs() < self.alpha) & ((p1 - p0).abs() < self.beta) & ((q1 - q0).abs() < self.beta)
        at[1][:, :count] = torch.where(weak, (2 * p1 + p0 + q0 + 2) >> 2, p0).to(frame.dtype)
        at[2][:] = torch.where(weak, (2 * q1 + q0 + p0 + 2) >> 2, q0).to(frame.dtype)


def get_inputs() -> list[torch.Tensor]:
    rows, columns = (torch.arange(side) // block_size for side in (frame_height, frame_width))
    shape = (frame_height // block_size + 1, frame_width // block_size + 1)
    means = torch.randint(110, 146, shape, dtype=torch.int16) + 60 * torch.randint(-1, 2, shape, dtype=torch.int16)
    noise = torch.randint(-4, 5, (frame_height, frame_width), dtype=torch.int16)
    return [(means[rows][:, columns] + noise).to(torch.uint8)]


def get_init_inputs() -> list:
    return [block_size, alpha, beta]
