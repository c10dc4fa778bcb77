"""Nearest box that each ray meets, among the leaves of a bounding volume hierarchy (a binary tree of boxes).

A ray is o + t * d for t >= 0. It meets the box with corners lo and hi when near <= far and far >= 0, where

    near = max over axes of min((lo - o) / d, (hi - o) / d),    far = min over axes of max((lo - o) / d, (hi - o) / d)

    t_hit = min over the leaves that the ray meets of max(near, 0),    -1 where it meets none

ray_origins and ray_directions are (num_rays, 3), bvh_min (lo) and bvh_max (hi) are (num_nodes, 3), float32; bvh_left
and bvh_right are (num_nodes,), int64; bvh_is_leaf is (num_nodes,), bool; t_hit is (num_rays,), float32; all are
contiguous. The constructor takes num_nodes. Node 0 is the root. The tree is complete: num_nodes + 1 is a power of two
and all leaves have the same depth. Other nodes are numbered at random; bvh_left and bvh_right name the two children,
and are -1 at leaves. The box of a node encloses those of its children, so whatever misses a node misses all below it.
num_rays and num_nodes vary between cases. There are no parameters.
Coordinates are multiples of 2^-10, directions are not normalised: their components are powers of two between 1/4 and 2
with either sign. All distances are then exact in float32, and rounding does not decide what is met.
Differs from kernrl: those values, a valid hierarchy with scattered nodes, and -1 instead of infinity.
"""

import torch
import torch.nn as nn

num_rays = 65536
num_bvh_nodes = 1023

CASES: dict[str, dict] = {
    "cpu": {"num_rays": 3000, "num_bvh_nodes": 255},
    "odd": {"num_rays": 1021, "num_bvh_nodes": 127},
    "packet": {"num_rays": 32, "num_bvh_nodes": 8191},
}
TAGS: tuple[str, ...] = ("graphics", "irregular")

# Redrawn corners would not be boxes, and redrawn directions would bring rays that graze them.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, num_nodes: int = 1023):
        super().__init__()
        self.levels = (num_nodes + 1).bit_length() - 1

    def forward(
        self, ray_origins: torch.Tensor, ray_directions: torch.Tensor, bvh_min: torch.Tensor, bvh_max: torch.Tensor,
        bvh_left: torch.Tensor, bvh_right: torch.Tensor, bvh_is_leaf: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        nodes = torch.zeros_like(bvh_left[:1])
        met = torch.ones_like(ray_origins[:, :1], dtype=torch.bool)
        nearest = torch.full_like(ray_origins[:, 0], torch.inf)
        for _ in range(self.levels):
            low = (bvh_min[nodes] - ray_origins[:, None]) / ray_directions[:, None]
            high = (bvh_max[nodes] - ray_origins[:, None]) / ray_directions[:, None]
            near, far = torch.minimum(low, high).amax(dim=2), torch.maximum(low, high).amin(dim=2)
            met = met & (near <= far) & (far >= 0)
            entries = near.clamp(min=0).masked_fill(~(met & bvh_is_leaf[nodes]), torch.inf)
            nearest = torch.minimum(nearest, entries.amin(dim=1))
            children = torch.stack([bvh_left[nodes], bvh_right[nodes]], dim=1).flatten()
            met = met.repeat_interleave(2, dim=1) & (children >= 0)
            nodes = children.clamp(min=0)
        return nearest.masked_fill(nearest.isinf(), -1)


def leaf_boxes(leaves: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Corners of boxes around random points, ordered by median splits along x, y and z in turn."""
    centers = torch.randint(-4096, 4097, (leaves, 3)) / 1024
    for level in range(leaves.bit_length() - 1):
        groups = centers.view(2**level, -1, 3)
        order = groups[:, :, level % 3].argsort(dim=1, stable=True)
        centers = groups.gather(1, order[:, :, None].expand(-1, -1, 3)).view(leaves, 3)
    widest = int(4096 * leaves ** (-1 / 3))  # half of the mean distance between neighbours, in grid steps
    halves = torch.randint(widest // 8, widest, (leaves, 3)) / 1024
    return centers - halves, centers + halves


def get_inputs() -> list[torch.Tensor]:
    low, high = leaf_boxes((num_bvh_nodes + 1) // 2)
    lows, highs = [low], [high]
    while len(lows[0]) > 1:
        lows.insert(0, lows[0].view(-1, 2, 3).amin(dim=1))
        highs.insert(0, highs[0].view(-1, 2, 3).amax(dim=1))
    # node i of the tree in level order, with children 2 i + 1 and 2 i + 2, becomes number numbers[i]
    numbers = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + torch.randperm(num_bvh_nodes - 1)])
    places = numbers.argsort()
    leaf = places >= num_bvh_nodes // 2
    left, right = (numbers[(2 * places + side).clamp(max=num_bvh_nodes - 1)].where(~leaf, -1) for side in (1, 2))
    steps = torch.tensor([-2, -1, -0.5, -0.25, 0.25, 0.5, 1, 2])[torch.randint(0, 8, (num_rays, 3))]
    origins = torch.randint(-5120, 5121, (num_rays, 3)) / 1024
    return [origins, steps, torch.cat(lows)[places], torch.cat(highs)[places], left, right, leaf]


def get_init_inputs() -> list:
    return [num_bvh_nodes]
