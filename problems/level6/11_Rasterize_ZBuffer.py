"""Rasterise triangles with a depth buffer, all in integers. Two outputs.

For a triangle with vertices (x_k, y_k, z_k), k in 0..2, and the pixel at column px and row py:

    edge(p, q, s) = (x_q - x_p) * (y_s - y_p) - (y_q - y_p) * (x_s - x_p)
    w_0 = edge(1, 2, pixel),    w_1 = edge(2, 0, pixel),    w_2 = edge(0, 1, pixel),    area = w_0 + w_1 + w_2

where area < 0, all four change their sign; a triangle with area 0 covers nothing. It covers the pixel when all w_k >= 0
(edges included), with z = floor((w_0 * z_0 + w_1 * z_1 + w_2 * z_2) / area). depth is the least z over the triangles
that cover the pixel and triangle_id is the triangle that has it, the first of those with the same z; where none covers,
depth is 65536 and triangle_id is -1. vertices is (num_triangles, 3, 3), int64: triangle, vertex, and x, y, z; depth
and triangle_id are (image_height, image_width), int64; all are contiguous. The constructor takes image_height and
image_width; `forward` returns the tuple (depth, triangle_id). z is in [0, 65536); vertices may lie outside of the
image, at most 256 pixels away. All three sizes vary between cases. There are no parameters.
"""

import torch
import torch.nn as nn

image_height = 512
image_width = 640
num_triangles = 256

CASES: dict[str, dict] = {
    "cpu": {"image_height": 90, "image_width": 120, "num_triangles": 50},
    "odd": {"image_height": 67, "image_width": 101, "num_triangles": 33},
    "crowd": {"image_height": 24, "image_width": 40, "num_triangles": 700},
}
TAGS: tuple[str, ...] = ("graphics", "image")

FAR = 2**16


class Model(nn.Module):
    def __init__(self, image_height: int, image_width: int):
        super().__init__()
        self.height = image_height
        self.width = image_width

    def forward(self, vertices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        px = torch.arange(self.width, device=vertices.device)
        py = torch.arange(self.height, device=vertices.device)[:, None]
        x, y, z = vertices[:, :, :, None, None].unbind(dim=2)
        w = []
        for p, q in ((1, 2), (2, 0), (0, 1)):
            w.append((x[:, q] - x[:, p]) * (py - y[:, p]) - (y[:, q] - y[:, p]) * (px - x[:, p]))
        area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (y[:, 1] - y[:, 0]) * (x[:, 2] - x[:, 0])
        sign = area.sign()
        covers = (w[0] * sign >= 0) & (w[1] * sign >= 0) & (w[2] * sign >= 0) & (area != 0)
        heights = (w[0] * z[:, 0] + w[1] * z[:, 1] + w[2] * z[:, 2]) * sign // area.abs().clamp(min=1)
        depth, triangle_id = heights.masked_fill(~covers, FAR), torch.arange(len(vertices), device=vertices.device)
        nearest = (depth * len(vertices) + triangle_id[:, None, None]).amin(dim=0)
        depth = nearest // len(vertices)
        return depth, (nearest % len(vertices)).masked_fill(depth == FAR, -1)


def get_inputs() -> list[torch.Tensor]:
    shape = (num_triangles, 3)
    centers = torch.rand(num_triangles, 1, 2) * torch.tensor([image_width, image_height])
    corners = (centers + (0.15 * image_width * torch.randn(*shape, 2)).clamp(-200, 200)).round().long()
    heights = torch.randint(0, FAR // 2, (num_triangles, 1)) + torch.randint(0, FAR // 2, shape)
    return [torch.cat([corners, heights[:, :, None]], dim=2)]


def get_init_inputs() -> list:
    return [image_height, image_width]
