"""Looks whether a signal to everybody would reach anything but itself: the judge, or a submission beside it.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import ctypes
import os

import torch
import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)
for what, act in (
    ("signal others", lambda: os.kill(-1, 0)),  # 0 only asks
    ("set others' nice values", lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0) - 1)),
):
    try:
        act()
        print("BREACH: may", what)
    except (OSError, ValueError):
        pass
if libc.reboot(0x89ABCDEF) == 0:  # CAD on, which it is
    print("BREACH: may reboot")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
