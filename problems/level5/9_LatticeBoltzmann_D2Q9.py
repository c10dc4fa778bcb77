"""One step of the lattice Boltzmann method in two dimensions with nine velocities: collide, bounce, stream.

With velocities c[0..8] = (0,0) (1,0) (0,1) (-1,0) (0,-1) (1,1) (-1,1) (-1,-1) (1,-1), each (x, y), at every cell:

    rho = sum over i of f[i],    u = 1 / rho * sum over i of f[i] * c[i]
    eq[i] = weights[i] * rho * (1 + 3 * c[i].u + 9/2 * (c[i].u)^2 - 3/2 * u.u)
    g[i] = f[i] - (f[i] - eq[i]) / tau    where solid is false
    g[i] = f[opposite of i]    where solid is true, with c[opposite of i] = -c[i]
    f_new[i, y + c_y, x + c_x] = g[i, y, x]    with c = c[i]; rows and columns wrap around

f and f_new are (9, height, width), float32; solid is (height, width), bool; the buffer `weights` is (9,), float32: 4/9,
then four times 1/9, then four times 1/36; all are contiguous. The constructor takes tau: 0.8 in every case. f is
positive, rho is about 1. height and width vary between cases.
"""

import torch
import torch.nn as nn

height = 2048
width = 2048
tau = 0.8

CASES: dict[str, dict] = {
    "cpu": {"height": 240, "width": 320},
    "odd": {"height": 101, "width": 203},
    "channel": {"height": 4, "width": 20_000},
}
TAGS: tuple[str, ...] = ("stencil", "physics", "fused")

# Densities are positive: a redrawn sum of them could be next to zero.
DISTRIBUTIONS: tuple[str, ...] = ("own",)

VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
OPPOSITE = (0, 3, 4, 1, 2, 7, 8, 5, 6)
WEIGHTS = (4 / 9, *4 * (1 / 9,), *4 * (1 / 36,))


class Model(nn.Module):
    def __init__(self, tau: float):
        super().__init__()
        self.tau = tau
        self.register_buffer("weights", torch.tensor(WEIGHTS))

    def forward(self, f: torch.Tensor, solid: torch.Tensor) -> torch.Tensor:
        rho = f.sum(dim=0)
        ux = sum(x * f[i] for i, (x, _) in enumerate(VELOCITIES) if x) / rho
        uy = sum(y * f[i] for i, (_, y) in enumerate(VELOCITIES) if y) / rho
        rest = 1 - 1.5 * (ux * ux + uy * uy)
        streamed = []
        for i, (x, y) in enumerate(VELOCITIES):
            along = 3 * (x * ux + y * uy)
            equilibrium = self.weights[i] * rho * (rest + along + 0.5 * along * along)
            collided = f[i] - (f[i] - equilibrium) / self.tau
            streamed.append(torch.where(solid, f[OPPOSITE[i]], collided).roll((y, x), dims=(0, 1)))
        return torch.stack(streamed)


def get_inputs() -> list[torch.Tensor]:
    f = torch.tensor(WEIGHTS)[:, None, None] * (0.5 + torch.rand(9, height, width))
    return [f, torch.rand(height, width) < 0.1]


def get_init_inputs() -> list:
    return [tau]
