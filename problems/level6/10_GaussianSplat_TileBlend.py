"""Gaussian splatting, the last stage: each tile of an image blends its list of two-dimensional Gaussians front to back.

A row of splats holds x, y, a, b, c, opacity, red, green, blue. Along the list of a tile, at its pixel (px, py):

    dx = px - x,    dy = py - y,    alpha = opacity * exp(-(a * dx^2 + 2 * b * dx * dy + c * dy^2) / 2)
    colour = colour + light * alpha * (red, green, blue),    then light = light * (1 - alpha)

from colour = 0 and light = 1. Nothing is skipped: small alphas and light count too (below 1e-7 they do not show).
splats is (G, 9), float32; tile_splats is (tiles_y, tiles_x, K), int64, each entry in [0, G), front first; image is
(tiles_y * tile_size, tiles_x * tile_size, 3), float32; all are contiguous. The constructor takes tile_size: 16 in every
case. Tile (v, w) has the pixels px = w * tile_size .. and py = v * tile_size .., tile_size of each, row py, column px.
a, b, c form a positive definite matrix; opacity is in [0.05, 0.95]; colours are signed. K = 9 * splats_per_tile and
G = tiles_y * tiles_x * splats_per_tile; these three vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

tiles_y = 64
tiles_x = 64
splats_per_tile = 7
tile_size = 16

CASES: dict[str, dict] = {
    "cpu": {"tiles_y": 6, "tiles_x": 8, "splats_per_tile": 3},
    "odd": {"tiles_y": 5, "tiles_x": 7, "splats_per_tile": 5},
    "deep": {"tiles_y": 3, "tiles_x": 3, "splats_per_tile": 40},
}
TAGS: tuple[str, ...] = ("graphics", "image", "recurrent")

# Redrawn splats would not be positive definite, and their opacities not between 0 and 1.
DISTRIBUTIONS: tuple[str, ...] = ("own",)


class Model(nn.Module):
    def __init__(self, tile_size: int):
        super().__init__()
        self.tile_size = tile_size

    def forward(self, splats: torch.Tensor, tile_splats: torch.Tensor) -> torch.Tensor:
        tiles_y, tiles_x, _ = tile_splats.shape
        listed = splats[tile_splats][:, :, None, None]
        x, y, a, b, c, opacity = listed[..., :6].unbind(dim=-1)
        rows = torch.arange(tiles_y * self.tile_size, device=splats.device).view(tiles_y, 1, -1, 1, 1)
        columns = torch.arange(tiles_x * self.tile_size, device=splats.device).view(tiles_x, 1, -1, 1)
        dx, dy = columns - x, rows - y
        alpha = opacity * torch.exp(-0.5 * (a * dx * dx + 2 * b * dx * dy + c * dy * dy))
        light = torch.cumprod(1 - alpha, dim=-1)
        weights = alpha * torch.cat([torch.ones_like(light[..., :1]), light[..., :-1]], dim=-1)
        colours = weights.flatten(2, 3) @ listed[:, :, 0, 0, :, 6:]
        colours = colours.view(tiles_y, tiles_x, self.tile_size, self.tile_size, 3)
        return colours.transpose(1, 2).reshape(tiles_y * self.tile_size, tiles_x * self.tile_size, 3)


def get_inputs() -> list[torch.Tensor]:
    """Splats that are scattered over the image; a tile lists those of itself and its eight neighbours, by depth."""
    count = tiles_y * tiles_x * splats_per_tile
    numbers = torch.arange(count).view(tiles_y, tiles_x, splats_per_tile)
    rows, columns = numbers.flatten() // (tiles_x * splats_per_tile), numbers.flatten() // splats_per_tile % tiles_x
    x, y = (tile_size * (place + torch.rand(count)) for place in (columns, rows))
    wide, narrow = (2 + 6 * torch.rand(2, count)).pow(-2)
    cos, sin = torch.nn.functional.normalize(torch.randn(2, count), dim=0)
    a, b, c = cos**2 * wide + sin**2 * narrow, cos * sin * (wide - narrow), sin**2 * wide + cos**2 * narrow
    splats = torch.stack([x, y, a, b, c, 0.05 + 0.9 * torch.rand(count), *torch.randn(3, count)], dim=1)
    around = [numbers.roll((i, j), dims=(0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    lists = torch.cat(around, dim=2)
    return [splats, lists.gather(2, torch.rand(count)[lists].argsort(dim=2))]


def get_init_inputs() -> list:
    return [tile_size]
