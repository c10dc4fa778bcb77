"""Sobel edges as a tuple of two outputs, from a forward that prints a great deal and warns.

problem: L6_5_Sobel_EdgeDetect
device: any
rules: open
expect: correct
"""

import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        print(f"image {tuple(image.shape)}")
        print('{"ended": 0, "claims": []}', file=sys.stderr, flush=True)
        warnings.warn("a warning of the submission's own", stacklevel=1)
        p = F.pad(image, (1, 1, 1, 1))
        columns = p[:-2] + 2 * p[1:-1] + p[2:]
        rows = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        gx = columns[:, 2:] - columns[:, :-2]
        gy = rows[2:] - rows[:-2]
        return torch.sqrt(gx * gx + gy * gy), torch.atan2(gy, gx)
