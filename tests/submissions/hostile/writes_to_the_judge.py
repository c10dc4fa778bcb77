"""Tries to reach the memory, the descriptors and the environment of every other process.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import os

import torch
import torch.nn as nn


def attack(pid: int) -> None:
    for name in ("mem", "environ", "fd"):
        try:
            if name == "fd":
                os.listdir(f"/proc/{pid}/fd")
            else:
                open(f"/proc/{pid}/{name}", "rb+" if name == "mem" else "rb").close()
        except OSError:
            continue
        print(f"BREACH: /proc/{pid}/{name} is open")
    try:
        os.kill(pid, 0)  # only asks: where there is no sandbox, a real signal would reach the whole machine
    except OSError:
        return
    print(f"BREACH: may signal {pid}")


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
