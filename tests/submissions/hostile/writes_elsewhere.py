"""Writes to the Python installation and to caches, for the next submission to load.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import site
import sys
from pathlib import Path

import torch
import torch.nn as nn

places = [Path(torch.__file__).parent, *map(Path, site.getsitepackages()), Path(sys.prefix), Path("/usr/lib"), Path("/var/tmp")]
for place in places:
    try:
        (place / "kevin_breach.pth").write_text("")
        (place / "kevin_breach.pth").unlink()
        print("BREACH: writes to", place)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
