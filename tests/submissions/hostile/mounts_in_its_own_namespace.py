"""Makes a user namespace of its own, in which it has every capability, and mounts over what it may not write.

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
NEWUSER, NEWNS, BIND, REMOUNT = 0x10000000, 0x00020000, 4096, 32

if os.fork() == 0:
    if libc.unshare(NEWUSER | NEWNS) == 0:
        for kind, target in ((b"tmpfs", b"/usr/lib"), (b"proc", b"/proc"), (b"tmpfs", b"/etc")):
            if libc.mount(b"none", target, kind, 0, None) == 0:
                print("BREACH: mounts over", target.decode(), flush=True)
        if libc.mount(b"/etc", b"/tmp", None, BIND, None) == 0:
            print("BREACH: binds /etc", flush=True)
        if libc.mount(None, b"/", None, REMOUNT | BIND, None) == 0:
            print("BREACH: mounts / anew", flush=True)
    os._exit(0)
os.wait()


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
