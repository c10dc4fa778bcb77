"""The first sphere that each ray meets, by testing all pairs. Four outputs.

A ray is o + t * d. Sphere j, of centre c and radius r, is met at the roots of |o + t * d - c|^2 = r^2: at the smaller
one where it is positive, else at the larger one where that is positive, else not at all. For each ray

    t_hit = the least such t over all spheres,    sphere_idx = the sphere where it is reached
    hit_points = o + t_hit * d,    hit_normals = (hit_points - c) / |hit_points - c|    with the c of that sphere

and where no sphere is met sphere_idx is -1 and the other three are 0. ray_origins and ray_directions (of length 1) are
(num_rays, 3), sphere_centers is (num_spheres, 3), sphere_radii (positive) is (num_spheres,), float32; t_hit is
(num_rays,), float32; sphere_idx is (num_rays,), int64; hit_points and hit_normals are (num_rays, 3), float32; all are
contiguous. `forward` returns the tuple in the order above. Spheres may overlap and some lie behind a ray's origin.
Both sizes vary between cases. There are no parameters.
No ray grazes a sphere, begins on one or meets two at nearly the same t, so that rounding does not decide what is hit.
Differs from kernrl: rays that keep these distances, 0 instead of infinity, and a reference without loops.
"""

import torch
import torch.nn as nn

num_rays = 65536
num_spheres = 256

CASES: dict[str, dict] = {
    "cpu": {"num_rays": 4000, "num_spheres": 64},
    "odd": {"num_rays": 1021, "num_spheres": 67},
    "crowd": {"num_rays": 300, "num_spheres": 400},
}
TAGS: tuple[str, ...] = ("graphics", "image")

# Redrawn rays would graze spheres.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


def meet(origins: torch.Tensor, directions: torch.Tensor, centers: torch.Tensor, radii: torch.Tensor) -> torch.Tensor:
    """(rays, spheres): t of the meeting, infinity where there is none."""
    offsets = origins[:, None] - centers
    a = directions.square().sum(dim=1, keepdim=True)
    b = (directions[:, None] * offsets).sum(dim=2)
    c = offsets.square().sum(dim=2) - radii.square()
    squares = b * b - a * c
    root = squares.clamp(min=0).sqrt()
    first, second = (-b - root) / a, (-b + root) / a
    t = first.where(first > 0, second)
    return t.where((squares >= 0) & (t > 0), torch.inf)


class Model(nn.Module):
    def forward(
        self, ray_origins: torch.Tensor, ray_directions: torch.Tensor, sphere_centers: torch.Tensor,
        sphere_radii: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        t_hit, sphere_idx = meet(ray_origins, ray_directions, sphere_centers, sphere_radii).min(dim=1)
        hit = t_hit.isfinite()
        t_hit = t_hit.where(hit, 0)
        hit_points = (ray_origins + t_hit[:, None] * ray_directions).where(hit[:, None], 0)
        outwards = hit_points - sphere_centers[sphere_idx]
        hit_normals = (outwards / outwards.norm(dim=1, keepdim=True)).where(hit[:, None], 0)
        return t_hit, sphere_idx.where(hit, -1), hit_points, hit_normals


def get_inputs() -> list[torch.Tensor]:
    centers, radii = 3 * torch.randn(num_spheres, 3), 0.25 + 0.35 * torch.rand(num_spheres)
    origins = torch.tensor([0.0, 0.0, 4.0]) + 0.3 * torch.randn(3 * num_rays, 3)
    directions = torch.nn.functional.normalize(torch.randn(3 * num_rays, 3) - torch.tensor([0.0, 0.0, 3.0]), dim=1)
    offsets = centers - origins[:, None]
    away = offsets.square().sum(dim=2)
    beside = away - (offsets * directions[:, None]).sum(dim=2).square()
    unclear = torch.stack([away, beside]).div(radii.square()).sub(1).abs().amin(dim=(0, 2)) < 0.08
    first, second = meet(origins, directions, centers, radii).topk(2, dim=1, largest=False).values.unbind(dim=1)
    kept = (unclear | (second - first < 0.01)).byte().argsort(stable=True)[:num_rays]
    return [origins[kept], directions[kept], centers, radii]


def get_init_inputs() -> list:
    return []
