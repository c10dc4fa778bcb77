"""Sets modes, owners, times and attributes of the system's files, which Landlock leaves alone, to what they are.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os
import sys

import torch
import torch.nn as nn

for place in (torch.__file__, sys.executable, sys.prefix, "/usr/bin/env", "/etc/passwd"):
    there = os.stat(place)
    attempts = {
        "mode": lambda: os.chmod(place, there.st_mode & 0o7777),
        "owner": lambda: os.chown(place, there.st_uid, there.st_gid),
        "times": lambda: os.utime(place, ns=(there.st_atime_ns, there.st_mtime_ns)),
        "attributes": lambda: os.setxattr(place, "user.kevin", b"note") or os.removexattr(place, "user.kevin"),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            print(f"BREACH: sets the {name} of {place}")
        except OSError:
            pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
