"""Way down of a multigrid cycle for Poisson's equation: weighted Jacobi sweeps, then the restricted residual.

    A u[i, j] = 4 * u[i, j] - u[i - 1, j] - u[i + 1, j] - u[i, j - 1] - u[i, j + 1]    with u = 0 outside of the grid
    sweeps times:    u = u + omega / 4 * (f - A u)    (all points at once, from the values before the sweep)
    r = f - A u
    coarse[i, j] = sum over a, b in -1..1 of k[a] * k[b] * r[2 i + 1 + a, 2 j + 1 + b],  k = 1/4, 1/2, 1/4

u and f (multiplied by the squared grid spacing already) are (grid_height, grid_width); the outputs are the smoothed u,
of the same shape, and coarse, ((grid_height - 1) // 2, (grid_width - 1) // 2), as the tuple (u, coarse). All are
float32 and contiguous. The constructor takes omega (0.8 in every case) and sweeps (2 in every case). Both sizes vary
between cases and are at least 3. There are no parameters.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

grid_height = 6143
grid_width = 6143
omega = 0.8
sweeps = 2

CASES: dict[str, dict] = {
    "cpu": {"grid_height": 767, "grid_width": 768},
    "odd": {"grid_height": 509, "grid_width": 1021},
    "strip": {"grid_height": 3, "grid_width": 20_000},
}
TAGS: tuple[str, ...] = ("stencil", "physics", "fused")


def residual(u: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
    padded = F.pad(u, (1, 1, 1, 1))
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return f - 4 * u + around


def restrict_rows(r: torch.Tensor) -> torch.Tensor:
    return 0.25 * r[:-2:2] + 0.5 * r[1:-1:2] + 0.25 * r[2::2]


class Model(nn.Module):
    def __init__(self, omega: float, sweeps: int):
        super().__init__()
        self.omega = omega
        self.sweeps = sweeps

    def forward(self, u: torch.Tensor, f: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for _ in range(self.sweeps):
            u = u + self.omega / 4 * residual(u, f)
        coarse = restrict_rows(restrict_rows(residual(u, f)).T).T
        return u, coarse.contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(grid_height, grid_width), torch.randn(grid_height, grid_width)]


def get_init_inputs() -> list:
    return [omega, sweeps]
