"""Gravitational accelerations of particles by direct summation over all pairs, with softened distances.

    d[i, j] = positions[j] - positions[i]
    a[i] = sum over j of masses[j] * d[i, j] / (|d[i, j]|^2 + softening^2)^(3/2)

positions is (num_particles, 3), masses is (num_particles,), a is (num_particles, 3), all float32 and contiguous. The
constructor takes softening, a length: 0.1 in every case. The pair i = j adds nothing. num_particles varies between
cases. Masses are positive in some input sets and signed in others. There are no parameters.
Differs from kernrl: more particles, and a larger softening, so that no close pair outweighs the sum of all others.
"""

import torch
import torch.nn as nn

num_particles = 12288
softening = 0.1

CASES: dict[str, dict] = {
    "cpu": {"num_particles": 700},
    "odd": {"num_particles": 509},
    "few": {"num_particles": 37},
}
TAGS: tuple[str, ...] = ("particles", "physics")

# No "wide": at such distances a few close pairs outweigh all others.
DISTRIBUTIONS: tuple[str, ...] = ("own", "signed", "offset")

# One running float32 sum over all particles, the plainest honest loop, is off by up to the budget itself.
TOLERANCE: float = 2.0


class Model(nn.Module):
    def __init__(self, softening: float = 0.01):
        super().__init__()
        self.softening = softening

    def forward(self, positions: torch.Tensor, masses: torch.Tensor) -> torch.Tensor:
        offsets = [axis[None, :] - axis[:, None] for axis in positions.unbind(dim=1)]
        squares = sum(offset.square() for offset in offsets) + self.softening**2
        pulls = masses * squares**-1.5
        return torch.stack([(pulls * offset).sum(dim=1) for offset in offsets], dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(num_particles, 3), 0.1 + torch.rand(num_particles)]


def get_init_inputs() -> list:
    return [softening]
