"""One Jacobi iteration for the heat (Laplace) equation on a grid: the mean of the four neighbours.

    u_new[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4    inside the grid
    u_new[i, j] = u[i, j]    in the first and last row and the first and last column

u and u_new are (grid_height, grid_width), float32, contiguous. Both sizes vary between cases and are at least 3. There
are no parameters.
Differs from kernrl: a larger grid, and a boundary that is not constant.
"""

import torch
import torch.nn as nn

grid_height = 8192
grid_width = 12288

CASES: dict[str, dict] = {
    "cpu": {"grid_height": 1536, "grid_width": 1280},
    "odd": {"grid_height": 509, "grid_width": 1021},
    "strip": {"grid_height": 3, "grid_width": 40000},
}
HIDDEN: dict[str, dict] = {"other": {"grid_height": 277, "grid_width": 1543}}
TAGS: tuple[str, ...] = ("stencil", "physics")


class Model(nn.Module):
    def forward(self, u: torch.Tensor) -> torch.Tensor:
        u_new = u.clone()
        u_new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u_new


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(grid_height, grid_width)]


def get_init_inputs() -> list:
    return []
