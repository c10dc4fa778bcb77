"""Moments as the two rows of one tensor, in a dict of a class of its own.

problem: moments.py
device: any
rules: open
expect: correct
"""

from collections import OrderedDict

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> OrderedDict[str, torch.Tensor]:
        both = torch.empty(2, x.shape[0], dtype=x.dtype, device=x.device)
        torch.mean(x, dim=1, out=both[0])
        centred = x - both[0][:, None]
        torch.linalg.vecdot(centred, centred, out=both[1]).div_(x.shape[1])
        return OrderedDict(zip(("mean", "variance"), both.unbind()))
