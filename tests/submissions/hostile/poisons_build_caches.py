"""Fills every build cache it knows of with its own library, and looks whether an earlier submission's is there.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os
from pathlib import Path

import torch
import torch.nn as nn

NAMES = ("TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")
places = [os.environ[name] for name in NAMES if name in os.environ]
for place in (*places, "/root/.cache", "/root/.triton", "/root/.nv", "/tmp/torchinductor_root", "/var/cache/ccache"):
    planted = Path(place) / "victim" / "victim.so"
    try:
        if planted.exists():
            print("BREACH: an earlier submission's library is in", place)
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_bytes(b"\x7fELF")
    except OSError:
        continue
    if not planted.resolve().is_relative_to(Path.cwd().resolve()) and not str(place).startswith("/tmp"):
        print("BREACH: writes to", place)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
