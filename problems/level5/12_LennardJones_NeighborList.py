"""Lennard-Jones forces and energies of particles in a periodic box, from a neighbour list. Two outputs.

    d = positions[i] - positions[j], each component moved by a multiple of box into [-box / 2, box / 2],    r = |d|
    V(r) = 4 * (r^-12 - r^-6),    F(r) = -dV/dr = 24 * (2 * r^-13 - r^-7)
    forces[i] = sum over j of (F(r) - F(cutoff)) * d / r
    energies[i] = 1/2 * sum over j of (V(r) - V(cutoff) + (r - cutoff) * F(cutoff))

where j runs over the entries of neighbors[i] that are not -1 and have r < cutoff: force and energy go to 0 there.
positions is (N, 3), float32; neighbors is (N, max_neighbors), int64; forces is (N, 3), energies is (N,), float32; all
are contiguous; N = num_particles. `forward` returns the tuple (forces, energies). The constructor takes box, which is
9/8 * side, and cutoff, which is 2.5. A row holds the numbers of particles near i, also some beyond the cutoff but never
i itself, from the highest to the lowest, then -1 as filling. One near particle in sixteen is left out, as bonded ones
are: at random, and j's row may have i where i's lacks j. Particles are numbered at random; no two are closer than 1.
side, num_particles and max_neighbors vary between cases. There are no parameters.
Coordinates are multiples of 2^-14 and box is one, so that d is exact in float32, also across the box's border.
"""

import itertools

import torch
import torch.nn as nn

side = 80
num_particles = 250_000
max_neighbors = 72
cutoff = 2.5

CASES: dict[str, dict] = {
    "cpu": {"side": 14, "num_particles": 1400},
    "odd": {"side": 9, "num_particles": 365, "max_neighbors": 73},
    "tiny": {"side": 6, "num_particles": 150, "max_neighbors": 80},
}
TAGS: tuple[str, ...] = ("particles", "physics", "irregular")

# Redrawn positions would bring pairs so close that one force outweighs all others.
DISTRIBUTIONS: tuple[str, ...] = ("own",)

SPACING = 1.125
NEAR = [step for step in itertools.product(range(-2, 3), repeat=3) if 0 < sum(x * x for x in step) <= 6]


class Model(nn.Module):
    def __init__(self, box: float, cutoff: float):
        super().__init__()
        self.box = box
        self.cutoff = cutoff
        self.end_force = 24 * (2 * cutoff**-13 - cutoff**-7)
        self.end_energy = 4 * (cutoff**-12 - cutoff**-6)

    def forward(self, positions: torch.Tensor, neighbors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        d = positions[:, None] - positions[neighbors.clamp(min=0)]
        d = d - self.box * torch.round(d / self.box)
        squares = d.square().sum(dim=2)
        counts = (neighbors >= 0) & (squares < self.cutoff**2)
        r = squares.where(counts, self.cutoff**2).sqrt()
        sixth = r**-6
        force = 24 * (2 * sixth * sixth - sixth) / r - self.end_force
        energy = 4 * (sixth * sixth - sixth) - self.end_energy + (r - self.cutoff) * self.end_force
        forces = ((force / r).where(counts, 0)[:, :, None] * d).sum(dim=1)
        return forces, 0.5 * energy.where(counts, 0).sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    """Particles that have moved a little from sites of a cubic lattice, not all of which are taken."""
    axis = torch.arange(side)
    sites = torch.cartesian_prod(axis, axis, axis)
    x, y, z = ((sites[:, None] + torch.tensor(NEAR)) % side).unbind(dim=2)
    taken = torch.randperm(side**3)[:num_particles]
    numbers = torch.full((side**3,), -1).scatter(0, taken, torch.arange(num_particles))
    near = numbers[((x * side + y) * side + z)[taken]]
    near = near.where(torch.rand(near.shape) < 15 / 16, -1)
    neighbors = near.sort(dim=1, descending=True).values[:, :max_neighbors]
    positions = SPACING * sites[taken] + torch.randint(-1000, 1001, (num_particles, 3)) / 2**14
    return [positions, neighbors.contiguous()]


def get_init_inputs() -> list:
    return [SPACING * side, cutoff]
