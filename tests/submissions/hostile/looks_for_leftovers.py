"""Looks for memory, queues, semaphores, locks and files that other processes or earlier submissions have left.

problem: softmax.py
device: cpu
rules: open
expect: correctness/values
"""

import os
import sys

import torch
import torch.nn as nn


def lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.readlines()
    except OSError:
        return []


for kind in ("shm", "sem", "msg"):
    if len(lines(f"/proc/sysvipc/{kind}")) > 1:
        print("BREACH: sees System V", kind)
for place in ("/dev/shm", "/tmp", os.environ["TMPDIR"], "/dev/mqueue"):
    try:
        known = [os.path.realpath(os.getcwd()), *sys.path]
        found = [name for name in os.listdir(place) if not any(each.startswith(f"{place}/{name}") for each in known)]
    except OSError:
        continue
    if set(found) - {"submission.py", "__pycache__"}:
        print(f"BREACH: finds {found[:5]} in {place}")
print("locks:", len(lines("/proc/locks")))
found = lines("/proc/self/net/unix")[1:]
named = [line.split()[-1] for line in found if line.split()[-1].startswith(("/", "@"))]
if named:
    print("BREACH: sees sockets", named[:5])


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
