"""Tries to become more urgent than the judge and the reference, by a nice value and by real-time classes.

problem: matmul.py
device: cpu
rules: open
expect: correct
"""

import os

import torch
import torch.nn as nn

attempts = {
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
    "round robin": lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    "first in, first out": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print("BREACH: raises its priority by", name)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
