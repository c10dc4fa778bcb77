"""Leaves messages where two submissions that run on one machine could meet, and looks for another's.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import ctypes
import os
import socket

import torch
import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)
NAME = b"\0kevin-meeting"
try:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(NAME)
    print("BREACH: another submission listens")
except OSError:
    pass
keep = socket.socket(socket.AF_UNIX)
keep.bind(NAME)
keep.listen()
if libc.shmget(0x4B45, 4096, 0o600) >= 0 or os.path.exists("/dev/shm/kevin-meeting"):
    print("BREACH: another submission left shared memory")
libc.shmget(0x4B45, 4096, 0o1600)
with open("/dev/shm/kevin-meeting", "w") as file:
    file.write("here")


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
