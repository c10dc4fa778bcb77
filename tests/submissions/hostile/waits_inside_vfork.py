"""Has a helper wait inside vfork again and again, where SIGSTOP does not reach it, to run on when its child has ended.

problem: softmax.py
device: cpu
rules: open
expect: correct
"""

import ctypes
import os
import signal
import time

import torch
import torch.nn as nn

libc = ctypes.PyDLL(None)
main = os.getpid()


def stopped() -> bool:
    with open(f"/proc/{main}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def count() -> None:
    seen = 0
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        seen = seen + 1 if stopped() else 0
        if seen == 1000:
            print("BREACH: runs while it should stand still", flush=True)
        if not seen and libc.syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:  # clone(CLONE_VFORK)
            time.sleep(0.0005)
            os._exit(0)


if os.fork() == 0:
    count()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)
