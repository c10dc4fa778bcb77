"""Installs a package and imports it.

problem: softmax.py
device: any
rules: open
expect: compile/import
"""

import subprocess
import sys

import torch
import torch.nn as nn

command = [
    sys.executable,
    "-m",
    "pip",
    "install",
    "--retries=0",
    "--timeout=1",
    "--target=.",
    "einops-nonexistent-kernel",
]
subprocess.run(command, check=False, capture_output=True)
import einops_nonexistent_kernel  # noqa


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
