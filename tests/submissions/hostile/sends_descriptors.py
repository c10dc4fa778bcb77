"""Sends a hundred descriptors along with each of its answers, to fill the judge's table.

problem: matmul.py
device: any
rules: open
expect: no gain
"""

import array
import gc
import os
import socket

import torch
import torch.nn as nn

runtime = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime")
sock = runtime.channel.sock
ends = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]


def send(frame: bytes, *rest, **keywords) -> None:
    sock.settimeout(None)
    try:
        sock.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))])
    except PermissionError:  # it may not
        sock.sendall(frame)


runtime.channel.send_frame = send


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A @ B
