"""Monte Carlo estimate of pi from given points: the fraction inside the unit circle. Two outputs.

    hits = number of n with x^2 + y^2 <= 1,    (x, y) = random_points[n]
    pi_estimate = 4 * hits / num_samples

random_points is (num_samples, 2), float32, contiguous; pi_estimate is a float32 and hits an int64 scalar, both of
shape (). `forward` returns the tuple (pi_estimate, hits). num_samples varies between cases. There are no parameters.
Coordinates are odd multiples of 2^-12 between 0 and 1: x^2 + y^2 is then exact in float32 and never equal to 1, so that
rounding does not decide what is inside.
Differs from kernrl: points on this grid, more of them, and the exact count beside the estimate, which alone is nearly
the same for all inputs.
"""

import torch
import torch.nn as nn

num_samples = 2**26

CASES: dict[str, dict] = {
    "cpu": {"num_samples": 2_000_000},
    "odd": {"num_samples": 1_000_003},
    "small": {"num_samples": 100},
}
TAGS: tuple[str, ...] = ("reduction", "physics")

# Redrawn points would lie outside of the square, some of them next to the circle.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def forward(self, random_points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = random_points.unbind(dim=1)
        hits = (x * x + y * y <= 1).sum()
        return 4 * hits.to(random_points.dtype) / random_points.shape[0], hits


def get_inputs() -> list[torch.Tensor]:
    return [(torch.randint(0, 2048, (num_samples, 2)) * 2 + 1) / 4096]


def get_init_inputs() -> list:
    return []
