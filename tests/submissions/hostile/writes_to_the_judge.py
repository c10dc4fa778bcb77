"""Tries to write to the memory and the descriptors of every other process.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os
import signal

import torch
import torch.nn as nn


def attack(pid: int) -> None:
    for name in ("mem", "environ", "fd"):
        try:
            if name == "fd":
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
            else:
                open(f"/proc/{pid}/{name}", "rb+" if name == "mem" else "rb").read(1)
        except OSError:
            continue
        print(f"BREACH: /proc/{pid}/{name} is open")
    try:
        os.kill(pid, signal.SIGKILL)
        os.kill(pid, 0)
    except OSError:
        return
    print(f"{pid} survives")


others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (os.getpid(), 1)]
for other in others:
    print("BREACH: sees process", other)
    attack(other)
for name in ("mem", "environ"):
    try:
        open(f"/proc/1/{name}", "rb").read(1)
        print(f"BREACH: reads /proc/1/{name}")
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
