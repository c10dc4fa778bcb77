"""One leapfrog step of the two-dimensional wave equation on a grid with fixed, zero boundary.

    laplacian[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]) / dx^2,    u = u_curr
    u_next[i, j] = 2 * u_curr[i, j] - u_prev[i, j] + (c * dt)^2 * laplacian[i, j]    inside the grid
    u_next[i, j] = 0    in the first and last row and the first and last column

u_curr, u_prev and u_next are (grid_height, grid_width), float32, contiguous. The constructor takes c (wave speed), dt
(time step) and dx (grid spacing): 1.0, 0.05 and 0.1 in every case. Both sizes vary between cases and are at least 3.
There are no parameters.
Differs from kernrl: random fields instead of a resting pulse, longer steps, so that all terms count, a larger grid.
"""

import torch
import torch.nn as nn

grid_height = 8192
grid_width = 8192
wave_speed = 1.0
time_step = 0.05
spacing = 0.1

CASES: dict[str, dict] = {
    "cpu": {"grid_height": 1024, "grid_width": 1280},
    "odd": {"grid_height": 509, "grid_width": 1021},
    "strip": {"grid_height": 40000, "grid_width": 3},
}
HIDDEN: dict[str, dict] = {"other": {"grid_height": 1301, "grid_width": 333}}
TAGS: tuple[str, ...] = ("stencil", "physics")


class Model(nn.Module):
    def __init__(self, c: float = 1.0, dt: float = 0.01, dx: float = 0.1):
        super().__init__()
        self.coeff = (c * dt / dx) ** 2

    def forward(self, u_curr: torch.Tensor, u_prev: torch.Tensor) -> torch.Tensor:
        inner = u_curr[1:-1, 1:-1]
        around = u_curr[:-2, 1:-1] + u_curr[2:, 1:-1] + u_curr[1:-1, :-2] + u_curr[1:-1, 2:]
        u_next = torch.zeros_like(u_curr)
        u_next[1:-1, 1:-1] = 2 * inner - u_prev[1:-1, 1:-1] + self.coeff * (around - 4 * inner)
        return u_next


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(grid_height, grid_width), torch.randn(grid_height, grid_width)]


def get_init_inputs() -> list:
    return [wave_speed, time_step, spacing]
