"""One step of the wave equation in cuTile, with gathered neighbours.

problem: L5_6_WaveEquation_2D
device: cuda
rules: kernel
expect: correct
"""

import cuda.tile as ct
import torch
import torch.nn as nn


@ct.kernel
def leapfrog(now, before, out, height, width, coeff, COLUMNS: ct.Constant[int]):
    row = ct.bid(0)
    column = ct.bid(1) * COLUMNS + ct.arange(COLUMNS, dtype=ct.int32)
    here = ct.gather(now, (row, column))
    around = ct.gather(now, (row - 1, column)) + ct.gather(now, (row + 1, column))
    around += ct.gather(now, (row, column - 1)) + ct.gather(now, (row, column + 1))
    new = 2.0 * here - ct.gather(before, (row, column)) + coeff * (around - 4.0 * here)
    inner = (column > 0) & (column < width - 1) & (row > 0) & (row < height - 1)
    ct.scatter(out, (row, column), ct.where(inner, new, 0.0))


class ModelNew(nn.Module):
    def __init__(self, c: float = 1.0, dt: float = 0.01, dx: float = 0.1):
        super().__init__()
        self.coeff = (c * dt / dx) ** 2

    def forward(self, u_curr, u_prev):
        height, width = u_curr.shape
        out = torch.empty_like(u_curr)
        arguments = (u_curr, u_prev, out, height, width, self.coeff, 1024)
        ct.launch(torch.cuda.current_stream(), (height, ct.cdiv(width, 1024)), leapfrog, arguments)
        return out
