"""Charge deposition of a particle-in-cell method: a particle's charge is shared among the four grid points around it.

    ix = min(floor(x), grid_size - 2),    fx = x - ix,    and likewise iy, fy from y,    (x, y) = positions[n]
    grid[ix, iy] += (1 - fx) * (1 - fy) * charges[n],      grid[ix + 1, iy] += fx * (1 - fy) * charges[n]
    grid[ix, iy + 1] += (1 - fx) * fy * charges[n],        grid[ix + 1, iy + 1] += fx * fy * charges[n]

for every particle n, into a grid that begins as zeros. positions is (num_particles, 2), charges is (num_particles,),
grid is (grid_size, grid_size), all float32 and contiguous; the constructor takes grid_size. Coordinates lie in
[0, grid_size - 1], both ends included; particles are in no particular order. Both sizes vary between cases. There are
no parameters.
Coordinates are multiples of 2^-5 and charges, which are signed, of 2^-6: all products and sums are exact in float32,
so that the order of the additions does not matter and one particle lost or counted twice shows.
Differs from kernrl: values on this grid, more particles, a reference without a loop over particles, and the share of a
particle on the last row or column, which belongs to that row or column.
"""

import torch
import torch.nn as nn

num_particles = 2**23
grid_size = 512

CASES: dict[str, dict] = {
    "cpu": {"num_particles": 300_000, "grid_size": 128},
    "odd": {"num_particles": 50_021, "grid_size": 61},
    "crowded": {"num_particles": 4000, "grid_size": 3},
}
TAGS: tuple[str, ...] = ("particles", "physics", "atomics")

# Redrawn positions would lie outside of the grid.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, grid_size: int = 256):
        super().__init__()
        self.grid_size = grid_size

    def forward(self, positions: torch.Tensor, charges: torch.Tensor) -> torch.Tensor:
        cells = positions.floor().clamp(max=self.grid_size - 2)
        fx, fy = (positions - cells).unbind(dim=1)
        ix, iy = cells.long().unbind(dim=1)
        grid = charges.new_zeros(self.grid_size * self.grid_size)
        for dx, share_x in ((0, 1 - fx), (1, fx)):
            for dy, share_y in ((0, 1 - fy), (1, fy)):
                grid.index_add_(0, (ix + dx) * self.grid_size + iy + dy, share_x * share_y * charges)
        return grid.view(self.grid_size, self.grid_size)


def get_inputs() -> list[torch.Tensor]:
    positions = torch.randint(0, 32 * (grid_size - 1) + 1, (num_particles, 2)) / 32
    return [positions, torch.randint(-128, 129, (num_particles,)) / 64]


def get_init_inputs() -> list:
    return [grid_size]
