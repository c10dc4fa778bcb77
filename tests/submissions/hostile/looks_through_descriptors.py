"""Looks through its descriptors for one that leads anywhere but to the judge's orders, the log and nothing.

problem: softmax.py
device: cpu
rules: open
expect: correctness/values
"""

import os
import stat

import torch
import torch.nn as nn

sockets = 0
for name in os.listdir("/proc/self/fd"):
    try:
        what, target = os.fstat(int(name)), os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        continue
    sockets += stat.S_ISSOCK(what.st_mode)
    harmless = stat.S_ISCHR(what.st_mode) or stat.S_ISFIFO(what.st_mode) or target.startswith(("/proc", "anon_inode"))
    if not harmless and not stat.S_ISSOCK(what.st_mode):
        print("BREACH: has a descriptor of", target)
if sockets > 1:
    print(f"BREACH: has {sockets} sockets")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
